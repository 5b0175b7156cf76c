"""Anthropic's memory tool on top of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memloom._async.client import AsyncMemloomClient
from memloom.agent import MemoryFile, text_document
from memloom.edits import CREATE_NEW, AsyncUpdater, FilePatch, FileUpdate, FileWrite, PatchOp
from memloom.errors import ApiError, InvalidInputError
from memloom.memory_tool import (
    MEMORY_TOOL,
    REASON,
    ROOT,
    Refused,
    only_match,
    parse_path,
    shown,
    snippet,
    text_of,
    view_directory,
    view_file,
    with_line,
)
from memloom.models import StoredFile, TextEdit
from memloom.scope import Scope

# Files that are measured with one request; each has 256 000 characters at most.
MEASURED_AT_ONCE = 20
MAX_FILE_CHARS = 256_000


class AsyncAnthropicMemoryTool:
    """Runs the commands of the tool `memory` for one scope that the host has chosen.

    The model sees `/memories/notes.md`, which is the file `memories/notes.md`. Directories are what paths have in
    common. Whatever goes wrong is a text that helps the model; only that the server cannot be reached is raised.

    Files change one by one, so a command on a directory can stop half way. `delete` can then be called again and goes
    on; `rename` first moves back what it moved.
    """

    definition = MEMORY_TOOL
    """What goes into the `tools` of a request."""

    def __init__(self, client: AsyncMemloomClient, scope: Scope) -> None:
        self._files = client.files
        self._scope = scope

    async def call(self, arguments: Mapping[str, Any]) -> str:
        """Runs one command: the `input` of a `tool_use` block. The text goes into its `tool_result`."""
        commands = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }
        command = commands.get(str(arguments.get("command")))
        if command is None:
            return f"Error: There is no command {arguments.get('command')}. There are {', '.join(commands)}"
        try:
            return await command(arguments)
        except Refused as refused:
            return str(refused)
        except InvalidInputError as error:
            return f"Error: {error}"
        except ApiError as error:
            return f"Error: {error.message} ({error.code})"

    async def _view(self, arguments: Mapping[str, Any]) -> str:
        path = parse_path(arguments.get("path"))
        stored = None if path == ROOT.strip("/") else await self._find(path)
        if stored is not None:
            return view_file(path, MemoryFile.of(path, stored).content, arguments.get("view_range"))
        below = await self._below(path)
        if not below and path != ROOT.strip("/"):
            raise Refused(f"The path {shown(path)} does not exist. Please provide a valid path.")
        return view_directory(path, await self._sizes(below))

    async def _create(self, arguments: Mapping[str, Any]) -> str:
        path, text = self._file(arguments, "path"), text_of(arguments, "file_text")
        taken = f"Error: File {shown(path)} already exists"
        # A directory of this name would hide behind the file.
        if await self._below(path):
            raise Refused(taken)
        try:
            await self._files.write(self._scope, path, FileWrite(text_document(text), REASON), if_match=CREATE_NEW)
        except ApiError as error:
            if error.is_conflict:
                raise Refused(taken) from None
            raise
        return f"File created successfully at: {shown(path)}"

    async def _str_replace(self, arguments: Mapping[str, Any]) -> str:
        path = self._file(arguments, "path")
        old, new = text_of(arguments, "old_str"), text_of({"new_str": "", **arguments}, "new_str")
        line = 0

        async def change(current: StoredFile) -> FileUpdate:
            nonlocal line
            line = only_match(path, _text(path, current), old)
            return FilePatch(edits=[TextEdit(old_text=old, new_text=new)], reason=REASON)

        text = _text(path, await self._update(path, change))
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{said}\n{snippet(text, line)}"

    async def _insert(self, arguments: Mapping[str, Any]) -> str:
        path, new = self._file(arguments, "path"), text_of(arguments, "insert_text")

        async def change(current: StoredFile) -> FileUpdate:
            text = with_line(_text(path, current), arguments.get("insert_line"), new)
            return FilePatch(ops=[PatchOp.replace("/content/text", text)], reason=REASON)

        await self._update(path, change)
        return f"The file {shown(path)} has been edited."

    async def _delete(self, arguments: Mapping[str, Any]) -> str:
        path = self._file(arguments, "path")
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

    async def _rename(self, arguments: Mapping[str, Any]) -> str:
        old, new = self._file(arguments, "old_path"), self._file(arguments, "new_path")
        taken = f"Error: The destination {shown(new)} already exists"
        if old == new or await self._find(new) or await self._below(new):
            raise Refused(taken)
        files = [old] if await self._find(old) else await self._below(old)
        if not files:
            raise Refused(f"Error: The path {shown(old)} does not exist")
        if files != [old] and new.startswith(f"{old}/"):
            raise Refused(f"Error: Cannot rename {shown(old)} to {shown(new)}, which is inside it")
        await self._move_all({one: new + one.removeprefix(old) for one in files}, old, new)
        return f"Successfully renamed {shown(old)} to {shown(new)}"

    async def _move_all(self, moves: Mapping[str, str], old: str, new: str) -> None:
        """Moves files one by one. If one cannot be moved, those that were are moved back."""
        moved: dict[str, str] = {}
        for one, other in moves.items():
            try:
                await self._files.move(self._scope, one, other, reason=REASON)
                moved[one] = other
            except (ApiError, InvalidInputError) as error:
                if isinstance(error, ApiError) and error.is_not_found:
                    # Somebody else deleted it meanwhile.
                    continue
                stuck = await self._move_back(moved)
                why = f"{error.message} ({error.code})" if isinstance(error, ApiError) else str(error)
                state = f"These files could not be moved back: {', '.join(stuck)}" if stuck else "Nothing was moved."
                raise Refused(f"Error: {shown(old)} could not be renamed to {shown(new)}: {why}. {state}") from None

    async def _move_back(self, moved: Mapping[str, str]) -> Sequence[str]:
        """Moves files back to where they were, the last first; those that could not be."""
        stuck = []
        for one, other in reversed(list(moved.items())):
            try:
                await self._files.move(self._scope, other, one, reason=REASON)
            except ApiError as error:
                # Gone is no longer in the way.
                if not error.is_not_found:
                    stuck.append(shown(other))
        return stuck

    async def _delete_file(self, path: str) -> bool:
        """Deletes a file, whatever its version; whether there was one."""
        try:
            await self._files.delete(self._scope, path, reason=REASON)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    def _file(self, arguments: Mapping[str, Any], name: str) -> str:
        path = parse_path(arguments.get(name))
        if path == ROOT.strip("/"):
            raise Refused(f"Error: Cannot {arguments.get('command')} the {ROOT} directory itself")
        return path

    async def _update(self, path: str, change: AsyncUpdater) -> StoredFile:
        try:
            return await self._files.update_with_retry(self._scope, path, change)
        except ApiError as error:
            if error.is_not_found:
                raise Refused(f"Error: The path {shown(path)} does not exist. Please provide a valid path.") from None
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
