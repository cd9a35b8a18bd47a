# SPDX-License-Identifier: Apache-2.0
"""
Removes what must not be shown from texts, and caps their length.

`foreign` is for every text that others wrote (API servers, controllers, webhooks, libraries). It is applied where such a
text enters the driver: these texts hold values of the objects that they are about. `redact` is the last guard before a
text leaves the driver, for what is a credential whatever is said about it. `one_line` is for names and the like within a
sentence of this driver's: they are repeated as they are, but may not begin a line of their own. All take linear time.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

DETAIL_LIMIT = 8 * 1024
"""Bytes of a ProblemDetails' detail: it is stored, logged and sent to every subscriber."""
FOREIGN_LIMIT = 16 * 1024
"""Characters that are read of a foreign text."""
_LONG = 120
"""Characters of base64 from which on it is taken for data."""

REMOVED = "[value removed]"
CUT = " ... (cut)"
"""What follows a foreign text that is longer than what is read of it."""
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{1,64}-----.*?(?:-----END [A-Z0-9 ]{1,64}-----|\Z)", re.S)
_AUTHORIZATION = re.compile(r"(?i)\b(bearer|basic)\s{1,8}[A-Za-z0-9._~+/=-]{8,}")
_SHORT = 16
"""Characters from which on a word may be a credential."""
_WORD = re.compile(rf"[A-Za-z0-9_+/.-]{{{_SHORT},}}={{0,2}}")
_DATA = re.compile(rf"[A-Za-z0-9+/]{{{_LONG},}}={{0,2}}")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+")
_NAMES = (
    r"(?:passwords?|passwd|passphrase|\b(?:pass|pwd|psk|pin|community|credentials?)|_pwd|_pass|token|secret|"
    r"(?:api|access|private)[_-]?key|client-key-data|client-certificate-data|certificate-authority-data)"
)
_NAME_AT_END = re.compile(rf"(?i){_NAMES}\Z")
_NAMED = re.compile(
    rf"(?i)(?:{_NAMES}(?:(?:\\{{0,4}}[\"'])?\s{{0,8}}[:=]\s{{0,8}}|\s{{1,8}}(?=\"))|"
    # A command's option and its value, as two words or two entries of a list.
    rf"(?<!-)--(?!-)[\w-]{{0,20}}{_NAMES}(?:\s{{1,8}}(?!-)|[\"'],?\s{{0,8}}(?=[\"'])))"
    # A field of such a name may be what the API server's error is about (field.ErrorType, structured-merge-diff).
    r"(?!(?-i:(?:Invalid|Unsupported|Duplicate) value: |(?:Not found|Forbidden|Too long|Too many): |"
    r"Required value(?:[:,;\])]|\s*\Z)|expected [\w ()]{1,60}, got ))(?=\S)"
)
"""What precedes a secret. Only these words in full, with what follows them, are no secret themselves."""
_USERINFO = re.compile(r"(://[^\s/@:]{0,100}:|://(?=[^\s/@:\"'<>]{1,200}@))[^\s\"'<>]{1,200}(?=@)")
_CONVERTED = re.compile(
    r"(?s)(conversion webhook for [^:]{0,300} failed: )(?!Post \"|the server could not find the requested resource\Z).*"
)
"""What a conversion webhook says itself: it has whole objects, and of a list nobody knows their values."""
_EXCERPT = re.compile(r"(found in )(?:#\d{1,9} byte of )?\.\.\.\|.*", re.S)
"""What Go's JSON decoder quotes of the text around an error, to its end."""
_QUOTED = re.compile(
    r"""\\{1,4}"[^"]*(?:"|\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)""", re.S
)
_LIST = re.compile(r"&?[\w.*]{0,80}[{\[]")
_UNQUOTED = re.compile(
    r"(?i)(?:(?:(?:invalid|required|unsupported|duplicate) value|not found|forbidden|too long|too many|expected)\W{1,8})?\S+"
)
_VALUE = re.compile(
    r"(?:(?<!metadata\.name: )Invalid|Unsupported|Duplicate) value: |expected [\w ()]{1,60}, got (?:string (?=\"))?|"
    r"(?:parsing time|cannot parse|quantity) (?=\")|"
    r"(?i:passw|token|secret|credential|key)[\w.\[\]-]{0,100}: Not found: "
)
"""What precedes a value in the API server's errors (field.Error, and the typed errors of structured-merge-diff).

Not an object's name: the error is about it, and names are in every text.
"""
_PLAIN = re.compile(r"(?:-?[0-9.]{1,6}|true|false|null|<nil>)(?![\w.-])")
_MESSAGE = re.compile(r"[A-Za-z][A-Za-z']*(?= [\w'`(][^:;,\]]{0,300}(?:[;,\]]|\Z))|immutable\b(?!:)")
"""The begin of a message that follows at once: a rule of a CRD that is about an object or a list has no value."""
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRUCTURE = re.compile(r"&?[\w.* ]{0,80}[{\[]")
"""The begin of a value as Go prints it, and of its next part: `map[string]interface {}{...}`."""
_QUOTE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.S)
_BRACKETS = re.compile(rf"[{{}}\[\]]|{_QUOTE.pattern}", re.S)
_BARE = re.compile(r"[^\s,;:]*")
_CONTROLS = (
    *(*range(0x20), *range(0x7F, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
    *(*range(0xD800, 0xE000), 0xFEFF),
)
"""What moves a terminal's cursor, ends a line of a log, turns the direction of text (Unicode's bidirectional controls), is not
seen, or has no bytes in UTF-8 (surrogates)."""
_ESCAPES = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")
_ESCAPED_TIMES = 3
_SPACE = re.compile(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]")
_URLLIB3 = re.compile(r"<[^<>]{0,200}>:?\s{0,2}|\b\w{1,50}\(host=[^()]{0,300}\):?\s{0,2}")


def foreign(text: str, *, of_validation: bool = False) -> str:
    """
    `text` of others on one line, without values of objects, without credentials, and of limited length.

    `of_validation`: the API server's own validation says so, and has values in quotes or brackets, or with a colon after them.
    """
    if len(text) < _SHORT and text.isalnum():  # one word, as a reason is
        return text
    cut = unescaped(text[:FOREIGN_LIMIT])
    cut = _EXCERPT.sub(r"\1[removed]", _CONVERTED.sub(r"\1[removed]", cut))
    shown = "".join(_without_values(_without_credentials(cut), of_validation=of_validation))
    line = printable(_SPACE.sub(" ", shown))
    return line + (CUT if len(text) > FOREIGN_LIMIT else "")


def unescaped(text: str) -> str:
    """`text` without the escapes of HTML, also those that are escaped again, as pages of proxies quote a request."""
    for _ in range(_ESCAPED_TIMES):
        before, text = text, _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text
        if text == before:
            break
    return text


def own_words(text: str) -> str:
    """What the author of a text says himself: without quoted texts, and without the values that the API server repeats."""
    cut, parts, position = text[:FOREIGN_LIMIT], list[str](), 0
    while found := _VALUE.search(cut, position):
        parts.append(cut[position : found.end()])
        position = found.end() if _is_message(found) else _end_of_value(cut, found.end())
    return _QUOTE.sub('""', "".join([*parts, cut[position:]]))


def printable(text: str) -> str:
    """`text` with its control characters escaped, but for newlines and tabs."""
    return text.translate(_ESCAPES)


class Lines(str):
    """A text of several lines, none of which is of others; str() keeps the type, also as the text of an error."""

    def __str__(self) -> str:
        return self


def lines(parts: Iterable[str]) -> Lines:
    """Each part on a line of its own; one that is `Lines` stays as it is."""
    return Lines("\n".join(part if isinstance(part, Lines) else one_line(part) for part in parts))


def one_line(text: str) -> str:
    """`text` with all its control characters escaped but tabs: what it holds of others does not begin a line."""
    return printable(text).replace("\n", "\\n")


def redact(text: str) -> str:
    """`text` without PEM blocks, Authorization headers, JWTs and long base64, on one line unless it is `Lines`."""
    shown = _without_credentials(text)
    return Lines(printable(shown)) if isinstance(text, Lines) else one_line(shown)


def _without_credentials(text: str) -> str:
    text = _PEM.sub("[PEM removed]", text)
    text = _AUTHORIZATION.sub(r"\1 [removed]", text)
    text = _USERINFO.sub(r"\1[removed]", text)
    return _WORD.sub(_without_data, text)


def names_secret(name: str) -> bool:
    """Whether a field of that name has a secret, as far as names tell it."""
    return _NAME_AT_END.search(name) is not None


def looks_secret(text: str) -> bool:
    """Whether `text`, a field's path with its value, holds a credential or names one, or is too long to be looked at."""
    if len(text) > FOREIGN_LIMIT:
        return True
    text = unescaped(text)
    return _without_credentials(text) != text or any(pattern.search(text) for pattern in (_NAMED, _USERINFO))


def words(error: BaseException) -> str:
    """An exception in a few words, without the addresses of objects that urllib3 prints."""
    text = _URLLIB3.sub("", str(error)[:FOREIGN_LIMIT])
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return foreign(text.strip(" '\"")) or type(error).__name__


def capped(text: str, limit: int = DETAIL_LIMIT) -> str:
    """`text` in at most `limit` bytes of UTF-8, with a note at its end if it was cut."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return text
    tail = "\n... (cut; the whole report is in the conductor's log)"
    return data[: limit - len(tail)].decode(errors="ignore") + tail


def _without_data(found: re.Match[str]) -> str:
    word = found[0]
    if word.startswith("eyJ") and _JWT.match(word):
        return "[token removed]"
    return _DATA.sub("[long value removed]", word) if len(word) >= _LONG else word


def _without_values(text: str, *, of_validation: bool) -> Iterator[str]:
    """`text` in parts. Numbers and booleans stay: they help, and no secret is one of a few digits next to its limit."""
    position = 0
    while found := _VALUE.search(text, position):
        yield from _without_secrets(text[position : found.end()])
        if plain := _PLAIN.match(text, found.end()):
            position = plain.end()
            yield REMOVED if found[0].endswith("got ") else plain[0]
        elif of_validation and _is_message(found):
            position = found.end()
        else:
            position = _end_of_value(text, found.end())
            yield REMOVED
    yield from _without_secrets(text[position:])


def _without_secrets(text: str) -> Iterator[str]:
    """`text` in parts, without what follows the name of a secret, and without passwords in URLs."""
    text = _USERINFO.sub(r"\1[removed]", text)
    position = 0
    while found := _NAMED.search(text, position):
        yield text[position : found.end()] + "[removed]"
        position = _end_of_secret(text, found.end())
    yield text[position:]


def _end_of_secret(text: str, start: int) -> int:
    """Where a secret ends: a quoted text, a list or mapping, else a word without the punctuation after it."""
    if quoted := _QUOTED.match(text, start):
        return quoted.end()
    if _LIST.match(text, start):
        return _end_of_value(text, start)
    word = _UNQUOTED.match(text, start)
    return start + len(word[0].rstrip(",;.)]}\"'")) if word else start


def _is_message(found: re.Match[str]) -> bool:
    """Whether what is wrong follows where a value is expected. A webhook writes what it likes."""
    text, start = found.string, found.end()
    is_begin = _MESSAGE.match(text, start) is not None and _STRUCTURE.match(text, start) is None
    return found[0].startswith("Invalid") and is_begin and "webhook" not in text and "denied" not in text


def _end_of_value(text: str, start: int) -> int:
    """Where a value ends: a quoted text, a structure in brackets, else a word. One that is not closed ends with `text`."""
    if text.startswith('"', start):
        quoted = _TEXT.match(text, start)
        return quoted.end() if quoted else len(text)
    opening = _STRUCTURE.match(text, start)
    if opening is None:
        bare = _BARE.match(text, start)
        return bare.end() if bare else start
    depth = 1
    for found in _BRACKETS.finditer(text, opening.end()):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth == 0 and not _STRUCTURE.match(text, found.end()):
                return found.end()
    return len(text)
