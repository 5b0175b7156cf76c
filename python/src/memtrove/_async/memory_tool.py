"""Anthropic's memory tool on top of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memtrove._async.client import AsyncMemtroveClient
from memtrove.agent import MemoryFile, text_document
from memtrove.edits import CREATE_NEW, AsyncUpdater, FilePatch, FileUpdate, FileWrite, PatchOp
from memtrove.errors import ApiError, InvalidInputError, MemtroveError
from memtrove.memory_tool import (
    MEMORY_TOOL,
    REASON,
    ROOT,
    Command,
    Refused,
    is_root,
    only_match,
    read_command,
    shown,
    snippet,
    view_directory,
    view_file,
    with_line,
)
from memtrove.models import StoredFile, TextEdit
from memtrove.scope import Scope
from memtrove.tool_output import ToolOutput

# Files that are measured with one request; each has 256 000 characters at most.
MEASURED_AT_ONCE = 20
MAX_FILE_CHARS = 256_000

EXISTS = "DOCUMENT_EXISTS"
"""What a move is answered with whose new path is taken."""


class AsyncAnthropicMemoryTool:
    """Runs the commands of the tool `memory` for one scope that the host has chosen.

    The model sees `/memories/notes.md`, which is the file `memories/notes.md`. Directories are what paths have in
    common. Whatever goes wrong is a text that helps the model; only that the server cannot be reached is raised.

    Files change one by one, so a command on a directory can stop half way. `delete` can then be called again and goes
    on; `rename` first moves back what it moved.
    """

    definition = MEMORY_TOOL
    """What goes into the `tools` of a request."""

    def __init__(self, client: AsyncMemtroveClient, scope: Scope) -> None:
        self._files = client.files
        self._scope = scope

    async def call(self, arguments: Mapping[str, Any] | str) -> ToolOutput:
        """Runs one command: the `input` of a `tool_use` block, or its JSON text.

        What the model can do something about is a text of the output. Only that the server was not reached, or that its
        answer could not be read, is raised; a command on a directory may then have been carried out in part.
        """
        try:
            return ToolOutput(await self._run(read_command(arguments)))
        except Refused as refused:
            return ToolOutput(str(refused), is_error=True)
        except ApiError as error:
            return ToolOutput(f"Error: {error.message} ({error.code})", is_error=True)

    async def _run(self, command: Command) -> str:
        commands = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }
        return await commands[command.name](command)

    async def _view(self, command: Command) -> str:
        path = command.path
        stored = None if is_root(path) else await self._find(path)
        if stored is not None:
            return view_file(path, MemoryFile.of(path, stored).content, command.lines)
        below = await self._below(path)
        if not below and not is_root(path):
            raise Refused(f"The path {shown(path)} does not exist. Please provide a valid path.")
        return view_directory(path, await self._sizes(below))

    async def _create(self, command: Command) -> str:
        path, taken = command.path, f"Error: File {shown(command.path)} already exists"
        # A directory of this name would hide behind the file.
        if is_root(path) or await self._below(path):
            raise Refused(taken)
        write = FileWrite(text_document(command.text), REASON)
        try:
            await self._files.write(self._scope, path, write, if_match=CREATE_NEW)
        except ApiError as error:
            if error.is_conflict:
                raise Refused(taken) from None
            raise
        return f"File created successfully at: {shown(path)}"

    async def _str_replace(self, command: Command) -> str:
        path, line = command.path, 0

        async def change(current: StoredFile) -> FileUpdate:
            nonlocal line
            line = only_match(path, _text(path, current), command.old)
            return FilePatch(edits=[TextEdit(old_text=command.old, new_text=command.text)], reason=REASON)

        missing = f"Error: The path {shown(path)} does not exist. Please provide a valid path."
        text = _text(path, await self._update(path, missing, change))
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{said}\n{snippet(text, line)}"

    async def _insert(self, command: Command) -> str:
        path = command.path

        async def change(current: StoredFile) -> FileUpdate:
            text = with_line(_text(path, current), command.line, command.text)
            return FilePatch(ops=[PatchOp.replace("/content/text", text)], reason=REASON)

        await self._update(path, f"Error: The path {shown(path)} does not exist", change)
        return f"The file {shown(path)} has been edited."

    async def _delete(self, command: Command) -> str:
        path = command.path
        if is_root(path):
            raise Refused(f"Error: Cannot delete the {ROOT} directory itself")
        if await self._delete_file(path):
            return f"Successfully deleted {shown(path)}"
        below = await self._below(path)
        if not below:
            raise Refused(f"Error: The path {shown(path)} does not exist")
        for number, one in enumerate(below):
            try:
                await self._delete_file(one)
            except ApiError as error:
                raise Refused(
                    f"Error: {number} of {len(below)} files in {shown(path)} were deleted, then it failed:"
                    f" {error.message} ({error.code}). Delete {shown(path)} again to go on."
                ) from None
        return f"Successfully deleted {shown(path)}"

    async def _rename(self, command: Command) -> str:
        old, new = command.path, command.new_path
        if is_root(old) or is_root(new):
            raise Refused(f"Error: Cannot rename the {ROOT} directory itself")
        renamed = f"Successfully renamed {shown(old)} to {shown(new)}"
        taken = f"Error: The destination {shown(new)} already exists"
        if old == new or await self._below(new):
            raise Refused(taken)
        try:
            if await self._move(old, new):
                return renamed
        except ApiError as error:
            if error.code == EXISTS:
                raise Refused(taken) from None
            raise
        files = await self._below(old)
        if not files:
            raise Refused(f"Error: The path {shown(old)} does not exist")
        if new.startswith(f"{old}/"):
            raise Refused(f"Error: Cannot rename {shown(old)} to {shown(new)}, which is inside it")
        if await self._find(new):
            raise Refused(taken)
        await self._move_all({one: new + one.removeprefix(old) for one in files}, old, new)
        return renamed

    async def _move_all(self, moves: Mapping[str, str], old: str, new: str) -> None:
        """Moves files one by one. If one cannot be moved, those that were are moved back."""
        moved: dict[str, str] = {}
        for one, other in moves.items():
            try:
                # One that is not there was deleted by somebody else meanwhile.
                if await self._move(one, other):
                    moved[one] = other
            except MemtroveError as error:
                stuck = await self._move_back(moved)
                if isinstance(error, ApiError):
                    in_the_way = f"there is a file in the way of {shown(one)}"
                    why = in_the_way if error.code == EXISTS else f"{error.message} ({error.code})"
                elif isinstance(error, InvalidInputError):
                    why = str(error)
                else:
                    raise
                said = "These files are already at the new path and could not be moved back"
                state = f"{said}: {', '.join(stuck)}" if stuck else "Nothing was moved."
                raise Refused(f"Error: {shown(old)} could not be renamed to {shown(new)}: {why}. {state}") from None

    async def _move_back(self, moved: Mapping[str, str]) -> Sequence[str]:
        """Moves files back to where they were, the last first; those that could not be."""
        stuck = []
        for one, other in reversed(list(moved.items())):
            try:
                # Gone is no longer in the way.
                await self._move(other, one)
            except MemtroveError:
                stuck.append(shown(other))
        return stuck

    async def _move(self, one: str, other: str) -> bool:
        """Moves a file, whatever its version; whether there was one."""
        try:
            await self._files.move(self._scope, one, other, reason=REASON)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    async def _delete_file(self, path: str) -> bool:
        """Deletes a file, whatever its version; whether there was one."""
        try:
            await self._files.delete(self._scope, path, reason=REASON)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    async def _update(self, path: str, missing: str, change: AsyncUpdater) -> StoredFile:
        if is_root(path):
            raise Refused(missing)
        try:
            return await self._files.update_with_retry(self._scope, path, change)
        except ApiError as error:
            if error.is_not_found:
                raise Refused(missing) from None
            raise

    async def _find(self, path: str) -> StoredFile | None:
        try:
            return await self._files.get(self._scope, path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def _below(self, path: str) -> Sequence[str]:
        """The files in a directory, however deep. Lists do not mind the letter case; directories do."""
        prefix = f"{path}/"
        every = [one.path async for one in self._files.list_all(self._scope, prefix=prefix)]
        return [one for one in every if one.startswith(prefix)]

    async def _sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        """How large files are, in bytes of what they show."""
        sizes: dict[str, int] = {}
        for first in range(0, len(paths), MEASURED_AT_ONCE):
            some = paths[first : first + MEASURED_AT_ONCE]
            found = await self._files.assemble(
                self._scope, some, max_docs=len(some), max_chars_total=len(some) * MAX_FILE_CHARS
            )
            for one in found.files:
                file = MemoryFile.of(one.path, StoredFile(etag=one.etag, document=one.document))
                sizes[one.path] = len(file.content.encode())
        return sizes


def _text(path: str, stored: StoredFile) -> str:
    text = stored.document.content.get("text")
    if isinstance(text, str):
        return text
    raise Refused(f"Error: The file {shown(path)} holds no text to edit.")
