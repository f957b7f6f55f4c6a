"""Why a store refused, in one line, and whether it will refuse the same again.

A refusal is *permanent* if the store understood the call and says no: a value too long, a deleted run, missing rights.
It is *passing* if the store is gone, busy or broken. A permanent one is not worth another attempt before someone has
changed something; a passing one is. One is worth it at once: somebody else wrote the same row first (`is_overtaken`).
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator

# Answers between 400 and 499 that may be another one a moment later.
_PASSING = {408, 409, 423, 425, 429, 499}
_PLAIN = {
    401: "it asks for a user and a password, or for other ones",
    403: "this user may not do that",
    408: "it gave up waiting",
    413: "what was sent is larger than it takes",
    429: "it has too many requests now",
    500: "it has an error of its own",
    502: "there is no answer behind its proxy",
    503: "it is not ready",
    504: "there was no answer in time behind its proxy",
}
_STATUS = re.compile(r"too many (\d{3}) error responses|failed with error code (\d{3})")
# The first line of what SQLAlchemy says of a row that is there already: in SQLite and PostgreSQL, MySQL, SQL Server.
_TAKEN = re.compile(r"\([\w.]+\).*(unique constraint|duplicate entry|duplicate key)", re.IGNORECASE)
# Some messages repeat what was sent.
_LONGEST = 500
_FOR_GOOD = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}


def is_permanent(error: BaseException) -> bool:
    """Return whether another attempt would be refused for the same reason.

    Parameters
    ----------
    error : BaseException
        What a call of MLflow raised.
    """
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _PASSING and not is_overtaken(error)
    if _of_the_network(error):
        return False
    return any(isinstance(one, OSError) and one.errno in _FOR_GOOD for one in _chain(error))


def is_overtaken(error: BaseException) -> bool:
    """Return whether somebody else wrote a row between MLflow's question whether it is there and its own writing.

    MLflow finds the row if it is asked again.

    Parameters
    ----------
    error : BaseException
        What a call of MLflow raised.
    """
    from mlflow.exceptions import MlflowException

    return isinstance(error, MlflowException) and _TAKEN.match(_own_words(error)) is not None


def reason(error: BaseException) -> str:
    """Return the reason of a failed call in one short line: for a network error, that of the operating system.

    Parameters
    ----------
    error : BaseException
        What a call of MLflow raised.
    """
    if innermost := _of_the_network(error):
        return innermost.strerror or str(innermost) or type(innermost).__name__
    status = _status(error)
    if status in _PLAIN and not _says_why(error):
        return f"{_PLAIN[status]} (HTTP {status})"
    lines = _own_words(error).strip().splitlines()
    said = lines[0] if lines else type(error).__name__
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."


def no_such_host(error: BaseException) -> bool:
    """Return whether a call failed because the name of its host does not resolve, or its address is no URL."""
    from mlflow.exceptions import InvalidUrlException

    return isinstance(error, InvalidUrlException) or isinstance(_innermost(error), socket.gaierror | UnicodeError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, ..."""
    deeper: BaseException | None = error
    while deeper is not None:
        yield deeper
        deeper = deeper.__cause__ or deeper.__context__


def _innermost(error: BaseException) -> BaseException:
    return list(_chain(error))[-1]


def _of_the_network(error: BaseException) -> OSError | None:
    innermost = _innermost(error)
    return innermost if isinstance(innermost, ConnectionError | TimeoutError | socket.gaierror) else None


def _own_words(error: BaseException) -> str:
    """Return the message of an error, without the code that MLflow puts before what its server says."""
    answer = getattr(error, "json", None)
    return str(answer["message"]) if isinstance(answer, dict) and answer.get("message") else str(error)


def _says_why(error: BaseException) -> bool:
    """Return whether MLflow itself answered with an error in words, not a proxy or a page of HTML."""
    from mlflow.exceptions import RestException

    return isinstance(error, RestException)


def _status(error: BaseException) -> int | None:
    """Return the status by which a store refused, if it answered; the codes of MLflow have one each."""
    from mlflow.exceptions import MlflowException

    for one in _chain(error):
        response = getattr(one, "response", None)
        if response is not None and getattr(response, "status_code", None):
            return int(response.status_code)
        if found := _STATUS.search(str(one)):
            return int(found[1] or found[2])
    if isinstance(error, MlflowException) and error.error_code != "INTERNAL_ERROR":
        return int(error.get_http_status_code())
    return None
