"""The few commands that a simulated container can play: sleep, echo, printenv, env, true, false, exit, trap and
``while true``.

Pure: a command and an environment in, what happens when out. Anything else is not understood (None), never guessed.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_SIGNS = ";&|<>()"
_ENDS = frozenset({";", "&&", "||"})


class ScriptRun(Struct, frozen=True):
    """What a simulated container does: ``outputs`` are (seconds from the start, text); it ends after ``duration_s``
    (infinity: never) with ``exit_code``. TERM ends it ``term_delay_s`` later with ``term_exit_code``; None ignores it.
    """

    outputs: tuple[tuple[float, str], ...] = ()
    duration_s: float = 0.0
    exit_code: int = 0
    term_exit_code: int | None = 143
    term_delay_s: float = 0.0


class _NotUnderstoodError(Exception):
    pass


class _ExitError(Exception):
    pass


class _Shell:
    """Plays words one by one; the state of one run."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.now_s = 0.0
        self.code = 0
        self.outputs: list[tuple[float, str]] = []
        self.term_exit_code: int | None = 143
        self.term_delay_s = 0.0

    def text(self, text: str) -> None:
        """Run a text in the shell's language."""
        if any(sign in text for sign in ("$(", "`", "<<")):
            raise _NotUnderstoodError
        lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=_SIGNS)
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError as error:
            raise _NotUnderstoodError from error
        if any(word and word not in _ENDS and not set(word) - set(_SIGNS) for word in words):
            raise _NotUnderstoodError
        self._list(words)

    def _list(self, words: Sequence[str]) -> None:
        position, link = 0, ";"
        while position < len(words):
            if words[position] == "while":
                self._forever(words[position + 1 :])
                return
            end = position
            while end < len(words) and words[end] not in _ENDS:
                end += 1
            runs = link == ";" or (link == "&&") == (self.code == 0)
            if runs and end > position:
                self.command([self._expand(word) for word in words[position:end]])
            link = words[end] if end < len(words) else ";"
            position = end + 1

    def _forever(self, words: Sequence[str]) -> None:
        if list(words[:3]) not in (["true", ";", "do"], [":", ";", "do"]) or "done" not in words:
            raise _NotUnderstoodError
        body = list(words[3 : list(words).index("done")])
        if "sleep" not in body:
            raise _NotUnderstoodError
        self._list([word for word in body if word != ""])
        self.now_s = math.inf

    def _expand(self, word: str) -> str:
        return _VARIABLE.sub(lambda match: self._env.get(match[1] or match[2], ""), word)

    def command(self, words: Sequence[str]) -> None:
        """Run one simple command."""
        name, arguments = words[0].rsplit("/", 1)[-1], list(words[1:])
        self.code = 0
        if name == "sleep":
            self.now_s += sum(_seconds(argument) for argument in arguments)
        elif name in _SHELLS and arguments[:1] and arguments[0] in ("-c", "-ec", "-exc", "-xc") and len(arguments) >= 2:
            self.text(arguments[1])
        elif name == "exec" and arguments:
            self.command(arguments)
            raise _ExitError
        elif name == "exit":
            self.code = int(arguments[0]) if arguments and arguments[0].isdigit() else 0
            raise _ExitError
        elif name in ("true", ":", "set"):
            pass
        elif name == "false":
            self.code = 1
        elif name == "trap" and len(arguments) >= 2:
            self._trap(arguments[0], arguments[1:])
        else:
            self._write(name, arguments)

    def _write(self, name: str, arguments: Sequence[str]) -> None:
        if name == "echo":
            self._print(" ".join(arguments) + "\n")
        elif (name == "env" and not arguments) or (name == "printenv" and not arguments):
            self._print("".join(f"{key}={value}\n" for key, value in sorted(self._env.items())))
        elif name == "printenv":
            self._print("".join(f"{self._env[key]}\n" for key in arguments if key in self._env))
            self.code = 0 if all(key in self._env for key in arguments) else 1
        else:
            raise _NotUnderstoodError

    def _print(self, text: str) -> None:
        self.outputs.append((self.now_s, text))

    def _trap(self, text: str, signals: Sequence[str]) -> None:
        if not {"TERM", "SIGTERM", "15"} & set(signals):
            return
        if not text.strip():
            self.term_exit_code = None
            return
        inner = _Shell(self._env)
        if not _run(lambda: inner.text(text)):
            raise _NotUnderstoodError
        self.term_exit_code, self.term_delay_s = inner.code, inner.now_s


def _seconds(argument: str) -> float:
    if argument in ("infinity", "inf"):
        return math.inf
    match = _NUMBER.fullmatch(argument)
    if match is None:
        raise _NotUnderstoodError
    return float(match[1]) * _UNIT_S[match[2]]


def _run(body: object) -> bool:
    assert callable(body)
    try:
        body()
    except _ExitError:
        pass
    except (_NotUnderstoodError, RecursionError):
        return False
    return True


def play(command: Sequence[str], env: Mapping[str, str]) -> ScriptRun | None:
    """Return what that argv does in that environment, or None when it is not made of the commands above."""
    if not command:
        return None
    shell = _Shell(env)
    if not _run(lambda: shell.command(list(command))):
        return None
    return ScriptRun(
        outputs=tuple((at_s, text) for at_s, text in shell.outputs if at_s < math.inf),
        duration_s=shell.now_s,
        exit_code=shell.code,
        term_exit_code=shell.term_exit_code,
        term_delay_s=shell.term_delay_s,
    )
