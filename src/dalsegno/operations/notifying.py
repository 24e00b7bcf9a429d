"""Sends the messages that wait for it: by webhook, as Slack wants them, or by e-mail.

A try is taken before it is made, so that two processes never make the same one; whoever dies in the middle leaves the
next try to others. So a message may come twice, though hardly ever, and its id says that it is the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any

from dalsegno.errors import DalsegnoError, PlatformError, UnknownName
from dalsegno.operations.sending import send
from dalsegno.settings import FILE_NAME, ChannelSettings, ChannelType, Encryption, Settings
from dalsegno.store import Store, outbox
from dalsegno.store.row_queries import Row

log = logging.getLogger(__name__)

#: How long one try may take.
_TIMEOUT_SECONDS = 10
#: How many are sent before anything else is looked at.
_AT_ONCE = 5
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(hours=1)
#: After how long nobody tries again.
GIVEN_UP = timedelta(days=1)

Message = Mapping[str, Any]


class Sender:
    def __init__(self, settings: Settings, store: Store, clock: Callable[[], datetime]) -> None:
        self.settings = settings
        self.store = store
        self.clock = clock

    def send(self) -> int:
        """Send some of what is due: how many were tried."""
        with self.store.database.reading() as connection:
            due = outbox.due(connection, self.clock(), _AT_ONCE)
        for row in due:
            self._try(row)
        return len(due)

    def _try(self, row: Row) -> None:
        again_at = self.clock() + min(_FIRST_WAIT * 2 ** min(row["attempts"], 20), _LONGEST_WAIT)
        with self.store.database.writing() as connection:
            if not outbox.take(connection, row, again_at):
                return
        try:
            deliver(self._channel(row["channel"]), {"id": _id(row), **row["message"]})
        except DalsegnoError as error:
            self._failed(row, str(error), again_at)
            return
        with self.store.database.writing() as connection:
            outbox.mark_sent(connection, row["id"], self.clock())

    def _failed(self, row: Row, problem: str, again_at: datetime) -> None:
        is_over = again_at - row["created_at"] > GIVEN_UP
        title = row["message"].get("title")
        if is_over:
            log.error("gives up telling %s that %s: %s", row["channel"], title, problem)
        else:
            log.warning("could not notify %s that %s, will try again: %s", row["channel"], title, problem)
        with self.store.database.writing() as connection:
            outbox.mark_failed(connection, row["id"], problem, None if is_over else again_at)

    def _channel(self, name: str) -> ChannelSettings:
        found = self.settings.notifications.get(name)
        if found is None:
            known = ", ".join(sorted(self.settings.notifications)) or "none"
            raise UnknownName(
                f"There is no channel {name!r}; the settings name {known}.",
                hint=f"Add [notifications.{name}] to {FILE_NAME}.",
            )
        return found


def _id(row: Row) -> str:
    return hashlib.sha256(f"{row['key']} {row['channel']}".encode()).hexdigest()[:32]


def deliver(channel: ChannelSettings, message: Message) -> None:
    match channel.type:
        case ChannelType.WEBHOOK:
            _post(channel, message, str(message["id"]))
        case ChannelType.SLACK:
            _post(channel, {"text": _slack_text(message)}, str(message["id"]))
        case ChannelType.EMAIL:
            _mail(channel, message)


# HTTP.


def _post(channel: ChannelSettings, body: Message, message_id: str) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": message_id, **channel.headers}
    request = urllib.request.Request(  # noqa: S310 - settings let http and https pass, nothing else
        str(channel.url), json.dumps(body).encode(), headers, method="POST"
    )
    try:
        send(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        raise PlatformError(f"The webhook of {channel.name} answered {error.code}.") from None
    except (OSError, ValueError) as error:
        # The URL itself is a secret, and what is raised may hold it.
        said = getattr(error, "reason", None) or type(error).__name__
        raise PlatformError(f"The webhook of {channel.name} cannot be reached: {said}.") from None


def _slack_text(message: Message) -> str:
    title, *lines = _lines(message)
    return "\n".join([f"*{_escaped(title)}*", *map(_escaped, lines)])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(message: Message) -> list[str]:
    found = (message.get("title"), message.get("text"), message.get("hint"))
    return [str(line) for line in found if line]


# E-mail.


def _mail(channel: ChannelSettings, message: Message) -> None:
    title, *lines = _lines(message)
    letter = EmailMessage()
    letter["Subject"] = " ".join(title.split())
    letter["From"] = str(channel.sender)
    letter["To"] = ", ".join(channel.to)
    letter["Message-ID"] = f"<{message['id']}@dalsegno>"
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content("\n".join([title, "", *lines, ""]))
    try:
        with _server(channel) as server:
            if channel.user:
                server.login(channel.user, channel.password or "")
            server.send_message(letter)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        # What a server answers to a login may repeat it.
        said = type(error).__name__ if isinstance(error, smtplib.SMTPAuthenticationError) else error
        raise PlatformError(f"The mail server of {channel.name} did not take it: {said}.") from None


def _server(channel: ChannelSettings) -> smtplib.SMTP:
    host, port = str(channel.host), channel.port
    if channel.encryption is Encryption.TLS:
        return smtplib.SMTP_SSL(host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=_TIMEOUT_SECONDS)
    if channel.encryption is Encryption.STARTTLS:
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server
