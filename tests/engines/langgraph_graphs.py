"""Graphs and models for the tests of LangGraph. Imports it: imported by running tests only."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send, interrupt
from pydantic import BaseModel

Play = Callable[[int, list[tuple[str, str]]], dict[str, Any]]


class Scripted(BaseChatModel):
    """Plays a reply for each of its own that the conversation holds already."""

    play: Play

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        number = sum(isinstance(one, AIMessage) for one in messages)
        told = [
            (one.tool_call_id, str(one.text))
            for one in messages
            if isinstance(one, ToolMessage)
        ]
        said = self.play(number, told)
        calls = said["tool_calls"]
        message = AIMessage(
            said["text"],
            tool_calls=[one for one in calls if isinstance(one["args"], dict)],
            # As LangChain's own models do with what they cannot parse.
            invalid_tool_calls=[
                {**one, "type": "invalid_tool_call", "error": "no JSON"}
                for one in calls
                if not isinstance(one["args"], dict)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def playing(replies: Sequence[Any]) -> Scripted:
    """Return a model of these replies: a text, or the calls of a reply."""
    from tests.support.world import world

    def play(number: int, told: list[tuple[str, str]]) -> dict[str, Any]:
        world.model_calls.append(f"reply {number}")
        world.told = told
        said = replies[number] if number < len(replies) else "done"
        if isinstance(said, str):
            return {"text": said, "tool_calls": []}
        return {"text": f"reason {number}", "tool_calls": said}

    return Scripted(play=play)


def tool_node(
    replies: Sequence[Any], others: Sequence[Any] = (), **options: Any
) -> Callable[[list[Any]], Any]:
    """Return the factory of a graph whose calls run together in one `ToolNode`."""

    def factory(tools: list[Any]) -> StateGraph[Any]:
        model = playing(replies)

        async def ask(state: Any) -> Any:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", ToolNode([*tools, *others], **options))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        return graph

    return factory


class Refund(BaseModel):
    """What an agent has to answer with."""

    order: str
    amount: int


class Answers(TypedDict):
    questions: list[Any]
    answers: Annotated[list[Any], operator.add]


def questions(schema: Any = None) -> Callable[[list[Any]], Any]:
    """Return the factory of a graph that asks each question in a task of its own."""

    def factory(tools: list[Any]) -> StateGraph[Any]:
        def ask(question: Any) -> Any:
            answer = interrupt(question, response_schema=schema)
            return {"answers": [[question, jsonable(answer)]]}

        graph = StateGraph(Answers)
        graph.add_node("ask", ask)
        graph.add_conditional_edges(
            START,
            lambda state: [Send("ask", one) for one in state["questions"]],
            ["ask"],
        )
        graph.add_edge("ask", END)
        return graph

    return factory


def jsonable(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def nodes(*functions: Any, parallel: bool = False) -> StateGraph[Any]:
    """Return a graph of nodes with a log, one after the other or side by side."""
    graph = StateGraph(Log)
    last = START
    for function in functions:
        graph.add_node(function.__name__, function)
        graph.add_edge(START if parallel else last, function.__name__)
        last = function.__name__
        if parallel:
            graph.add_edge(last, END)
    if not parallel:
        graph.add_edge(last, END)
    return graph
