"""The page that answers questions from a published folder, and checks that folder."""

from urllib.parse import quote

from nicegui import run, ui

from ..streams.tables import StreamTables
from ..tables import TableRelease
from ..tables.release.suggestion import examples
from .parts import frame, go, handled, head, lines, offered, outcome, refusal, words
from .project import RELEASES, STREAMS, Project
from .state import State
from .streaming import opened


def ask_page(state: State, folder: str = "") -> None:
    """Draw the page that answers questions from ``folder``, the folder of a release or a stream."""
    project = state.project
    with frame(state, "/ask", "Ask what was published, at no cost"):
        places = [f"{STREAMS}/{name}" for name in project.streams()]
        places += [f"{RELEASES}/{name}" for name in project.published()]
        if not places:
            return refusal("Nothing is published yet.", "/release")
        with ui.card():
            first = folder if folder in places else places[-1]
            chosen = ui.select(places[::-1], value=first, label="Release or stream")
            chosen.classes("w-full")
            question = ui.input("Question").classes("w-full")
            known = ui.column()

            async def offer() -> None:
                found = await run.io_bound(_examples, project, chosen.value)
                known.clear()
                with known:
                    offered(question, found or [])

            chosen.on_value_change(handled(offer))
            ui.timer(0, handled(offer), once=True)
            words("Answers come from released tables alone, with exact intervals; *unbiased*.")
            answer = ui.html("", sanitize=False).props('role="status"')

            async def ask() -> None:
                answer.content = ""
                said = await run.io_bound(_answer, project, chosen.value, question.value or "")
                answer.content = lines(said or "")

            question.on("keydown.enter", handled(ask))
            ui.button("Ask", on_click=handled(ask))
        with ui.card():
            head("Check the folder", 2)
            ui.label("From its files alone: sums, noise, intervals, and the proof of optimality.")

            def verify() -> None:
                state.jobs.start(f"check of {chosen.value}", "verify", chosen.value)
                go(f"/ask?folder={quote(chosen.value)}")

            ui.button("Verify", on_click=handled(verify)).props("outline")
            job = state.jobs.last
            if job is not None and job.words[0] == "verify" and job.status is not None:
                ui.label(job.command)
                outcome(job)


def _examples(project: Project, place: str) -> list[str]:
    """Return example questions that the release or stream in the folder ``place`` answers."""
    plan = _published(project, place).plan
    return examples(plan.schema, plan.marginals)


def _published(project: Project, place: str) -> TableRelease | StreamTables:
    kind, _, name = place.partition("/")
    if kind == STREAMS:
        return opened(project, name).tables
    return TableRelease.load(project.folder / place)


def _answer(project: Project, place: str, question: str) -> str:
    """Return, as text, the answer of the release or stream in the folder ``place``."""
    return str(_published(project, place).ask(question))
