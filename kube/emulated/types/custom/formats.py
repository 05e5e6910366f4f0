"""The formats that Kubernetes 1.34 holds texts of custom objects against; all others are ignored.

``k8s-short-name`` and ``k8s-long-name`` are new in 1.34, whose API server stays compatible with 1.33: it ignores them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

_HEX = "[0-9a-fA-F]"
_MAC = re.compile(rf"{_HEX}{{2}}(([:-]){_HEX}{{2}})(\2{_HEX}{{2}})*|{_HEX}{{4}}(\.{_HEX}{{4}})+")
_GO_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_SCALA_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_UNITS = (
    ("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"), ("h", "hr", "hour"),
    ("d", "day"), ("w", "wk", "week"),
)  # fmt: skip
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_EMAIL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[^\s@<>,;:()\[\]\"\\]+")
_COLOUR_PART = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"


def _matches(pattern: str, flags: re.RegexFlag = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str = "", fourth: str = "") -> Callable[[str], bool]:
    three = f"{third}[0-9a-f]{{{4 - (third != '')}}}"
    four = f"{fourth}[0-9a-f]{{{4 - (fourth != '')}}}"
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{three}-?{four}-?[0-9a-f]{{12}}", re.ASCII | re.IGNORECASE)


def is_date(text: str) -> bool:
    """``2006-01-02``."""
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return text.startswith("0000-") and is_date("2000" + text[4:])


def is_date_time(text: str) -> bool:
    """``2006-01-02T15:04:05Z`` with or without parts of seconds and an offset."""
    day, _, rest = text.lower().partition("t")
    found = _CLOCK.fullmatch(rest.partition("t")[0])
    return is_date(day) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def is_duration(text: str) -> bool:
    """Return what ``time.ParseDuration`` reads, or Scala's way to write one."""
    if _GO_DURATION.fullmatch(text):
        return True
    return any(_is_unit(unit.lower()) for _, unit in _SCALA_DURATION.findall(text))


def _is_unit(unit: str) -> bool:
    return any(unit.startswith(names[-1]) or unit in names for names in _UNITS)


def _is_hostname(text: str) -> bool:
    return len(text.encode()) <= 255 and _hostname(text) and all(len(part) <= 63 for part in text.split("."))


def _hostname(text: str) -> bool:
    from mews.kube.cel.regexes import compiled

    char = r"[a-zA-Z0-9\p{S}\p{L}]"
    dashed = r"[a-zA-Z0-9\-\p{S}\p{L}]"
    if text.isascii():  # the same in one language more, which is there without google-re2
        char, dashed = "[a-zA-Z0-9$+<=>^`|~]", r"[a-zA-Z0-9\-$+<=>^`|~]"
        letter = "[a-zA-Z]"
    else:
        letter = r"[a-zA-Z\p{L}]"
    label = rf"{char}(-?{char}{{0,62}})?"
    return compiled(rf"^({label}|({char}({dashed}{{0,61}}{char})?\.)+{letter}{{2,63}})$")(text)


def _is_address(text: str, mark: str) -> bool:
    sloppy = re.sub(r"(?<![\d:a-fA-F.])0+(?=\d)|(?<=\.)0+(?=\d)", "", text) if mark == "." else text
    try:
        ipaddress.ip_address(sloppy)
    except ValueError:
        return False
    return mark in text and "%" not in text


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not re.fullmatch(r"\d{1,3}", bits, re.ASCII) or bits != str(int(bits)):
        return False
    mark = ":" if ":" in address else "."
    return _is_address(address, mark) and int(bits) <= (128 if mark == ":" else 32)


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and len(re.sub("[:.-]", "", text)) in (12, 16, 40)


def _is_uri(text: str) -> bool:
    """``url.ParseRequestURI``: absolute, or a path from the root."""
    if not text or any(ord(char) < 32 or ord(char) == 127 for char in text):
        return False
    scheme, colon, rest = text.partition(":")
    has_scheme = bool(colon) and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*", scheme, re.ASCII) is not None
    if not has_scheme:
        return text.startswith("/") and not _has_bad_escape(text)
    if not rest.startswith("/"):
        return bool(rest) and not rest.startswith("?")
    try:
        parts = urlsplit(text)
        host = parts.netloc.rpartition("@")[2]
        fine = not any(char in host for char in ' "\\^`{|}') and (parts.port is None or parts.port >= 0)
    except ValueError:
        return bool(re.fullmatch(r"[^/]*://[^/\s\[\]]*:\d*(/.*)?", text)) and not _has_bad_escape(text)
    return fine and not _has_bad_escape(text)


def _has_bad_escape(text: str) -> bool:
    return re.search(rf"%(?!{_HEX}{{2}})", text.partition("?")[0]) is not None


def _is_email(text: str) -> bool:
    """Return what ``mail.ParseAddress`` reads: an address, with a display name or without."""
    found = re.fullmatch(r"\s*(\"(?:[^\"\\]|\\.)*\"|[^<>@,;:\"()\[\]\\]*)\s*<([^<>]*)>\s*", text)
    address = found[2] if found else text.strip(" \t")
    if _EMAIL.fullmatch(address):
        return not address.endswith(".") and ".." not in address.partition("@")[2]
    return re.fullmatch(r'"(?:[^"\\]|\\.)+"@[^\s@<>,;:()\[\]"\\]+', address) is not None


def _digits_sum(text: str) -> int:
    total = 0
    for index, digit in enumerate(reversed(text)):
        twice = int(digit) * (1 + index % 2)
        total += twice % 10 + 1 if twice >= 10 else twice
    return total


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    known = (
        r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
        r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
    )
    return re.fullmatch(known, digits) is not None and _digits_sum(digits) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(index * value for index, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": _is_email,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(text, "."),
    "ipv6": lambda text: _is_address(text, ":"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "mac": _is_mac,
    "password": lambda _text: True,
    "rgbcolor": _matches(rf"rgb\(\s*{_COLOUR_PART}\s*,\s*{_COLOUR_PART}\s*,\s*{_COLOUR_PART}\s*\)"),
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None,
    "uri": _is_uri,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
}
"""Name without dashes -> whether a text is of that format."""


def known(name: str) -> str:
    """Return the format's name as it is looked up, "" for one that is ignored."""
    plain = name.replace("-", "")
    return plain if plain in FORMATS else ""
