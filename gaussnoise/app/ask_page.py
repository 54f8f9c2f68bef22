"""The page of questions to a published folder, and of its check."""

from nicegui import run, ui

from ..tables import TableRelease
from .parts import frame, go, handled, head, lines, outcome, refusal, words
from .project import RELEASES
from .state import State


def ask_page(state: State, release: str = "") -> None:
    """Draw the page, about one published release."""
    with frame(state, "/ask", "Ask what was published, at no cost"):
        names = state.project.published()
        if not names:
            return refusal("Nothing is published yet.", "/release")
        with ui.card():
            chosen = ui.select(
                names[::-1], value=release if release in names else names[-1], label="Release"
            ).classes("w-full")
            question = ui.input("Question", placeholder="share of employed=yes given sex")
            question.classes("w-full")
            words("Answers come from released tables alone, with exact intervals; *unbiased*.")
            answer = ui.html("", sanitize=False).props('role="status"')

            async def ask() -> None:
                place, text = state.project.folder / RELEASES / chosen.value, question.value or ""
                said = await run.io_bound(lambda: str(TableRelease.load(place).ask(text)))
                answer.content = lines(said or "")

            question.on("keydown.enter", handled(ask))
            ui.button("Ask", on_click=handled(ask))
        with ui.card():
            head("Check the folder", 2)
            ui.label("From its files alone: sums, noise, intervals, and the proof of optimality.")

            def verify() -> None:
                place = f"{RELEASES}/{chosen.value}"
                state.jobs.start(f"check of {chosen.value}", "verify", place)
                go(f"/ask?release={chosen.value}")

            ui.button("Verify", on_click=handled(verify)).props("outline")
            job = state.jobs.last
            if job is not None and job.words[0] == "verify" and job.status is not None:
                ui.label(job.command)
                outcome(job)
