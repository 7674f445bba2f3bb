"""Connects the MCP servers of agents while a turn runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from agents import Agent


@asynccontextmanager
async def connected(agents: Iterable[Agent[Any]]) -> AsyncIterator[None]:
    """Connect all servers of some agents, and leave them where the run ends."""
    servers = {id(one): one for agent in agents for one in agent.mcp_servers}
    async with AsyncExitStack() as stack:
        for server in servers.values():
            # Also after a connection that failed half-way.
            stack.push_async_callback(server.cleanup)
            await server.connect()
        yield
