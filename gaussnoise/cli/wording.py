"""Messages of the library for the shell, with its options instead of Python's arguments."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# quoted text, code and options: not an argument, or the same in the shell
_KEPT = r"(?<!\w)'[^']*'|`[^`]*`|--?\w\S*|[\w.]+\([^()]*\)"
_VALUE = r'"[^"]*"(?: or "[^"]*")*|\{[^{}]*\}|[\w.+-]*\w(?!\()'
_ARGUMENT = re.compile(rf"{_KEPT}|(?<![\w.])(?P<name>[a-z]\w*)=(?P<value>{_VALUE})?(?!\()")
# Python calls that commands make themselves
_CALLS = {
    r"(?:gn\.streams\.)?Ticks\(\.\.\., (\w+=\w+)\)": r"\1",
    r"(?:gn\.)?\b(combine|difference)\([^()]*\)": r"gaussnoise \1",
    r"(?:gn\.streams\.)?Stream\.open\('([^']*)'\)": r"gaussnoise stream tick \1",
}
# for messages of commands that lack this option
OF_RELEASES = {"on_outside": "--on-outside"}
_QUESTION = "ask: "  # questions stay as they are: an attribute may be called level


def options_of(commands: Any, arguments: Iterable[str]) -> Mapping[str, str]:
    """Return {Python argument: shell option} of all commands.

    Options of the called command, which ``arguments`` name, take precedence.
    """
    named = commands
    for word in arguments:
        named = _commands_of(named).get(word, named)
    return {
        option.name: max(option.opts, key=len)
        for command in (*_leaves(commands), named)
        for option in command.params
        if any(name.startswith("--") for name in option.opts)
    } | {"targets": "--target"}


def _commands_of(group: Any) -> Mapping[str, Any]:
    return getattr(group, "commands", {})


def _leaves(group: Any) -> Iterator[Any]:
    """Yield all commands in a group of commands and in its subgroups."""
    for one in _commands_of(group).values():
        yield from _leaves(one) if _commands_of(one) else [one]


def in_shell(text: str, options: Mapping[str, str]) -> str:
    """Return a message of the library with shell options in place of Python arguments.

    ``options`` is {argument: option}.

    >>> in_shell('release: hint: on_outside="drop"', {"on_outside": "--on-outside"})
    'release: hint: --on-outside drop'
    """
    if _QUESTION in text:
        return text

    def said(found: re.Match[str]) -> str:
        option, value = options.get(found["name"]), found["value"]
        if option is None or value == "False":
            return found[0]
        if value is None or value == "True":
            return option
        if value.startswith("{"):  # {"age": (0, 120)} is age=0,120 in the shell
            value = re.sub(r"[{}()\[\]\"' ]", "", value).replace(":", "=", 1)
        value = value.replace('"', "")
        return f"{option} {'none' if value == 'None' else value}"

    for call, instead in _CALLS.items():
        text = re.sub(call, instead, text)
    return _ARGUMENT.sub(said, text)
