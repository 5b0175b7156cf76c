# Made by scripts/generate.py. Do not edit.
"""What a conversation was told of the memory: loaded once, kept fresh by its own changes, told again after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memtrove._sync.memory_tool import AnthropicMemoryTool
from memtrove._sync.toolbox import Toolbox
from memtrove.agent import MemoryEdit, MemoryFile, WriteMode
from memtrove.errors import MemtroveError
from memtrove.memory_tool import changes
from memtrove.models import FileList, StoredFile
from memtrove.scope import Scope, file_path
from memtrove.tool_definitions import tools
from memtrove.tool_output import ToolOutput

if TYPE_CHECKING:
    from memtrove._sync.agent import AgentMemory


class MemorySession:
    """The memory as one conversation sees it.

    Before each request to the model, ask for `next_turn`: it has the text when the model must see it (at first, and
    after a change), and nothing when what the model saw is still true.
    """

    def __init__(self, memory: AgentMemory, scope: Scope, files: Sequence[str], prefix: str | None, limit: int) -> None:
        self._memory = memory
        self._scope = scope
        self._paths = [file_path(path) for path in files]
        self._prefix = prefix
        self._limit = limit
        self._snapshot = ""
        # Nothing was loaded yet, or a change was made and it could not be loaded anew.
        self._stale = True
        # The model has not seen the snapshot as it is.
        self._due = True

    def prime(self) -> str:
        """Loads the named files and the list of the others; the snapshot."""
        self.refresh()
        self._due = True
        return self._snapshot

    def snapshot(self) -> str:
        """What the memory says, as text for a prompt."""
        return self._snapshot

    @property
    def is_due(self) -> bool:
        """Whether the next turn must carry the snapshot: the model has not seen it, or not as it is now."""
        return self._due

    def next_turn(self) -> str | None:
        """The snapshot, if the next turn must carry it. Whoever takes it sends it: it is due no more."""
        if self._stale:
            self.refresh()
        due, self._due = self._due, False
        return self._snapshot if due else None

    def carry_again(self) -> None:
        """Has the next turn carry the snapshot again, for example because the conversation was shortened."""
        self._due = True

    def refresh(self) -> None:
        """Loads everything again. If it says something else than before, the next turn must carry it."""
        parts = [*self._told(), *self._others()]
        snapshot = "".join(f"{part}\n" for part in parts)
        self._stale = False
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            self._due = True

    def write_file(
        self,
        path: str,
        content: str,
        *,
        mode: WriteMode | None = None,
        content_type: str | None = None,
        reason: str | None = None,
        evidence: Any = None,
        service_id: str | None = None,
    ) -> MemoryFile:
        """Writes a file, as `AgentMemory.write_file` does."""
        file = self._memory.write_file(
            self._scope,
            path,
            content,
            mode=mode,
            content_type=content_type,
            reason=reason,
            evidence=evidence,
            service_id=service_id,
        )
        self._changed()
        return file

    def patch_file(
        self,
        path: str,
        edits: Sequence[MemoryEdit],
        *,
        reason: str | None = None,
        evidence: Any = None,
        max_conflict_retries: int = 3,
        service_id: str | None = None,
    ) -> MemoryFile:
        """Changes a file, as `AgentMemory.patch_file` does."""
        file = self._memory.patch_file(
            self._scope,
            path,
            edits,
            reason=reason,
            evidence=evidence,
            max_conflict_retries=max_conflict_retries,
            service_id=service_id,
        )
        self._changed()
        return file

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolOutput:
        """Runs a tool, as a `Toolbox` does."""
        output = Toolbox(self._memory, self._scope).call_tool(name, arguments)
        if not output.is_error and any(tool.name == name and not tool.only_reads for tool in tools()):
            self._changed()
        return output

    def call_memory_tool(self, arguments: Mapping[str, Any] | str) -> ToolOutput:
        """Runs a command of Anthropic's memory tool, as an `AnthropicMemoryTool` does."""
        try:
            return AnthropicMemoryTool(self._memory.client, self._scope).call(arguments)
        finally:
            # A command on a directory may have changed something before it failed.
            if changes(arguments):
                self._changed()

    def _changed(self) -> None:
        """Loads anew after a change.

        The change is made whatever becomes of this; so a failure is remembered, and loading is tried again before the
        next turn.
        """
        self._stale = True
        try:
            self.refresh()
        except MemtroveError:
            return

    def _told(self) -> Sequence[str]:
        """The named files, as far as they exist and fit."""
        if not self._paths:
            return []
        options = self._memory.options
        found = self._memory.client.files.assemble(
            self._scope,
            self._paths,
            max_docs=options.assemble_max_docs,
            max_chars_total=options.assemble_max_chars_total,
        )
        files = {one.path: StoredFile(etag=one.etag, document=one.document) for one in found.files}
        dropped = {one.path for one in found.dropped_files}
        parts = []
        for path in self._paths:
            if path in files:
                text = MemoryFile.of(path, files[path]).content.rstrip("\n")
                parts.append(f'<file path="{path}">\n{text}\n</file>')
            else:
                why = "does not fit; load it when needed" if path in dropped else "does not exist yet"
                parts.append(f'<file path="{path}" omitted="{why}"/>')
        return parts

    def _others(self) -> Sequence[str]:
        """The files that are only named."""
        if self._prefix is None:
            return []
        found: FileList = self._memory.client.files.list(self._scope, prefix=self._prefix, limit=self._limit)
        more = ["(and more: list them with memory_list_files)"] if found.next_after is not None else []
        return [f'<files prefix="{self._prefix}">', *(one.path for one in found.files), *more, "</files>"]
