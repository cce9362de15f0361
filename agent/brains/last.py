"""The runbooks as the last link of a chain: what they find, and that no model could be asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.brains.takeover import acts_of
from agent.messages import User
from agent.providers.base import Reply
from capabilities.jobs import Cancelled
from capabilities.run import read_only_runner
from runbooks.catalogue import BUILT_IN, Books
from runbooks.look import look, this_machine
from runbooks.model import Words
from runbooks.runner import Stopped
from runbooks.wording import answer_text

if TYPE_CHECKING:
    from collections.abc import Callable

    import execution
    from agent.providers.base import Sent
    from guard.ports import Cancel

_NO_MODEL = Words(
    "No model could be asked ({why}). What the built-in checks say:",
    "无法询问任何模型（{why}）。内置检查的结果：",
)
_ATTACHED = '\n\n<data from="attachment '
_ATTACHMENT = re.compile(r'<data from="attachment \d+">\n(.*?)\n</data>', re.DOTALL)
_STANDS = Words("What was done before stands:", "此前已执行的操作仍然有效：")


def answer_of_runbooks(
    guard: execution.Guard, *, shell: str, session: str, books: Books = BUILT_IN
) -> Callable[[Sent, str, Cancel], Reply]:
    """The last link of a conversation's chain, as `agent.brains.chain.World.last` takes it."""

    def answer(sent: Sent, why: str, cancel: Cancel) -> Reply:
        from runbooks.piped import Piped

        question, piped = _asked(sent)
        where = this_machine()
        try:
            report = look(
                question,
                read_only_runner(guard, shell=shell, session=session, cancel=cancel),
                where,
                utc=guard.clock.utc,
                stopped=cancel.is_set,
                books=books,
                piped=Piped(piped) if piped else None,
                redact=guard.redactor.text,
            )
        except Stopped:
            raise Cancelled("interrupted", not_done="nothing was changed") from None
        parts = [_NO_MODEL.of(report.lang).format(why=why or "-"), answer_text(report, now_s=where.now_s).rstrip()]
        if acts := acts_of(sent):
            parts.append("\n".join([_STANDS.of(report.lang), *acts]))
        return Reply(guard.redactor.text("\n\n".join(parts)))

    return answer


def _asked(sent: Sent) -> tuple[str, str]:
    """The question, and what came with it: a request holds both in one text (`agent.envelope.as_sent`)."""
    text = next((one.text for one in reversed(sent.messages) if isinstance(one, User)), "")
    question, mark, attached = text.partition(_ATTACHED)
    return question, "\n".join(_ATTACHMENT.findall(mark + attached))
