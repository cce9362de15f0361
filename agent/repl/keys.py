"""Which key does what. Bindings only; what happens is the desk's and the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.filters import Condition, completion_is_selected, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from agent.repl import dock

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyPressEvent

    from agent.repl.desk import Desk


class Actions(Protocol):
    """What keys ask of the application beside the desk."""

    desk: Desk
    composer: Buffer

    def stop_or_leave(self) -> None: ...

    def open_output(self) -> None: ...

    def leave(self) -> None: ...

    def clear(self) -> None: ...


_DOCK_KEYS = {
    "enter": dock.ENTER,
    "escape": dock.ESCAPE,
    "backspace": dock.BACKSPACE,
    "c-u": dock.ERASE,
    "up": dock.UP,
    "down": dock.DOWN,
    "pageup": dock.PAGE_UP,
    "pagedown": dock.PAGE_DOWN,
    "home": dock.HOME,
    "end": dock.END,
    "c-home": dock.HOME,
    "c-end": dock.END,
    "c-c": dock.INTERRUPT,
    "c-d": dock.END_OF_INPUT,
}


def bindings(actions: Actions) -> KeyBindings:
    """All keys of the conversation."""
    keys = KeyBindings()
    desk, composer = actions.desk, actions.composer
    asked = Condition(desk.ask_is_open)
    writing = ~asked & ~is_searching
    editing = Condition(lambda: bool(desk.editing))
    _dock_keys(keys, actions, asked)

    @keys.add("enter", filter=writing & ~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        composer.validate_and_handle()

    @keys.add("enter", filter=writing & completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        composer.complete_state = None

    @keys.add("escape", "enter", filter=writing)
    @keys.add("c-j", filter=writing)
    def _(event: KeyPressEvent) -> None:
        composer.insert_text("\n")

    @keys.add(Keys.BracketedPaste, filter=writing)
    def _(event: KeyPressEvent) -> None:
        composer.insert_text(pasted(event.data))

    @keys.add("escape", filter=writing)
    def _(event: KeyPressEvent) -> None:
        if composer.complete_state:
            composer.cancel_completion()
        elif desk.editing:
            desk.stop_editing()
        else:
            desk.interrupt()

    @keys.add("c-c", filter=writing)
    @keys.add("<sigint>", filter=writing)
    def _(event: KeyPressEvent) -> None:
        actions.stop_or_leave()

    @keys.add("c-d", filter=writing)
    def _(event: KeyPressEvent) -> None:
        if composer.text:
            composer.delete()
        else:
            actions.leave()

    @keys.add("up", filter=writing & ~editing)
    def _(event: KeyPressEvent) -> None:
        if not composer.text and desk.queued:
            composer.text = desk.take_back()
            composer.cursor_position = len(composer.text)
        else:
            composer.auto_up(count=event.arg)

    @keys.add("c-x", "c-e", filter=writing)
    def _(event: KeyPressEvent) -> None:
        composer.open_in_editor()

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-o", filter=writing)
    def _(event: KeyPressEvent) -> None:
        actions.open_output()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        actions.clear()

    return keys


def pasted(text: str) -> str:
    """A paste as text of the composer: line ends of all kinds are line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _dock_keys(keys: KeyBindings, actions: Actions, asked: Condition) -> None:
    """While an ask is open every key is the dock's, or, if the dock does not want it, the composer's."""
    desk, composer = actions.desk, actions.composer

    def add(name: str, key: str) -> None:
        @keys.add(name, filter=asked, eager=True)
        def _(event: KeyPressEvent) -> None:
            if not desk.press(dock.Key(key)):
                _to_composer(composer, key)

    for name, key in _DOCK_KEYS.items():
        if name != "escape":
            add(name, key)

    @keys.add("escape", filter=asked)
    def _(event: KeyPressEvent) -> None:
        desk.press(dock.Key(dock.ESCAPE))

    @keys.add("<sigint>", filter=asked)
    def _(event: KeyPressEvent) -> None:
        desk.press(dock.Key(dock.INTERRUPT))

    @keys.add(Keys.BracketedPaste, filter=asked, eager=True)
    def _(event: KeyPressEvent) -> None:
        text = pasted(event.data)
        if not desk.press(dock.Key(dock.PASTE, text)):
            composer.insert_text(text)

    @keys.add(Keys.Any, filter=asked)
    def _(event: KeyPressEvent) -> None:
        if not event.data.isprintable():
            desk.press(dock.Key(dock.OTHER))
        elif not desk.press(dock.Key(dock.TEXT, event.data)):
            composer.insert_text(event.data)


def _to_composer(composer: Buffer, key: str) -> None:
    """What a key that came too early for the dock does to what is being written. Enter ends the line that was typed."""
    if key == dock.ENTER:
        composer.validate_and_handle()
    elif key == dock.BACKSPACE:
        composer.delete_before_cursor()
