"""Anthropic's memory tool on top of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memloom._async.client import AsyncMemloomClient
from memloom.agent import MemoryFile, text_document, with_text
from memloom.edits import CREATE_NEW, FileUpdate, FileWrite
from memloom.errors import ApiError, InvalidInputError
from memloom.memory_tool import (
    MEMORY_TOOL,
    ROOT,
    Refused,
    check_unique,
    inserted,
    parse_path,
    replaced,
    shown,
    text_of,
    told,
    view_directory,
    view_file,
)
from memloom.models import StoredFile
from memloom.scope import Scope


class AsyncAnthropicMemoryTool:
    """Runs the commands of the tool `memory` for one scope that the host has chosen.

    The model sees `/memories/notes.md`, which is the file `memories/notes.md`. Directories are what paths have in
    common. Whatever goes wrong is a text that helps the model; only that the server cannot be reached is raised.
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
            return told(error)
        except ApiError as error:
            later = " The memory is not available right now; go on without it." if error.status >= 500 else ""
            return f"Error: {error.code}: {error.message}.{later}"

    async def _view(self, arguments: Mapping[str, Any]) -> str:
        path = parse_path(arguments.get("path"))
        stored = None if path == ROOT.strip("/") else await self._find(path)
        if stored is not None:
            return view_file(path, MemoryFile.of(path, stored).content, arguments.get("view_range"))
        below = await self._below(path)
        if not below and path != ROOT.strip("/"):
            raise Refused(f"The path {shown(path)} does not exist. Please provide a valid path.")
        return view_directory(path, below)

    async def _create(self, arguments: Mapping[str, Any]) -> str:
        path, text = self._file(arguments, "path"), text_of(arguments, "file_text")
        try:
            write = FileWrite(text_document(text), "memory tool: create")
            await self._files.write(self._scope, path, write, if_match=CREATE_NEW)
        except ApiError as error:
            if error.is_conflict:
                raise Refused(f"Error: File {shown(path)} already exists") from None
            raise
        return f"File created successfully at: {shown(path)}"

    async def _str_replace(self, arguments: Mapping[str, Any]) -> str:
        path = self._file(arguments, "path")
        old, new = text_of(arguments, "old_str"), text_of({"new_str": "", **arguments}, "new_str")
        said = ""

        async def change(current: StoredFile) -> FileUpdate:
            nonlocal said
            text = MemoryFile.of(path, current).content
            check_unique(path, text, old)
            said = replaced(path, text, old, new)
            return FileWrite(with_text(current.document, text.replace(old, new, 1)), "memory tool: str_replace")

        await self._update(path, change)
        return said

    async def _insert(self, arguments: Mapping[str, Any]) -> str:
        path, new = self._file(arguments, "path"), text_of(arguments, "insert_text")

        async def change(current: StoredFile) -> FileUpdate:
            text = inserted(MemoryFile.of(path, current).content, arguments.get("insert_line"), new)
            return FileWrite(with_text(current.document, text), "memory tool: insert")

        await self._update(path, change)
        return f"The file {shown(path)} has been edited."

    async def _delete(self, arguments: Mapping[str, Any]) -> str:
        path = self._file(arguments, "path")
        paths = [path] if await self._find(path) else await self._below(path)
        if not paths:
            raise Refused(f"Error: The path {shown(path)} does not exist")
        for one in paths:
            await self._files.delete(self._scope, one, reason="memory tool: delete")
        return f"Successfully deleted {shown(path)}"

    async def _rename(self, arguments: Mapping[str, Any]) -> str:
        old, new = self._file(arguments, "old_path"), self._file(arguments, "new_path")
        below = [old] if await self._find(old) else await self._below(old)
        moves = {one: new + one.removeprefix(old) for one in below}
        if not moves:
            raise Refused(f"Error: The path {shown(old)} does not exist")
        if await self._find(new) or await self._below(new):
            raise Refused(f"Error: The destination {shown(new)} already exists")
        for one, other in moves.items():
            await self._files.move(self._scope, one, other, reason="memory tool: rename")
        return f"Successfully renamed {shown(old)} to {shown(new)}"

    def _file(self, arguments: Mapping[str, Any], name: str) -> str:
        path = parse_path(arguments.get(name))
        if path == ROOT.strip("/"):
            raise Refused(f"Error: {ROOT} itself cannot be changed; name something below it")
        return path

    async def _update(self, path: str, change: Any) -> None:
        try:
            await self._files.update_with_retry(self._scope, path, change)
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
        return [one.path async for one in self._files.list_all(self._scope, prefix=f"{path}/")]
