"""What stands around a picture and a request: the checkpoint's own chat template, or a known frame."""
from .checkpoint import Checkpoint, Refused


def template(checkpoint: Checkpoint) -> str | None:
    """The text of the checkpoint's chat template, wherever it keeps it."""
    path = checkpoint.folder / "chat_template.jinja"
    if path.exists():
        return path.read_text()
    for name in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        found = (checkpoint.json(name) or {}).get("chat_template")
        if isinstance(found, str):
            return found
    return None


def rendered(text: str, request: str, special: dict) -> str:
    """The template with one message of the user's: a picture, then the request."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message):
        raise Refused(f"the chat template refuses a picture with a request: {message}")

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.globals["raise_exception"] = refuse
    message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": request}]}
    return environment.from_string(text).render(messages=[message], add_generation_prompt=True, **special)


def frame(checkpoint: Checkpoint, request: str, picture: str, known: list[str]) -> tuple[str, str]:
    """What comes before the picture's tokens and after them. `picture`: the token that stands for it; `known`: frames to fall back to."""
    text = template(checkpoint)
    special = {name: "" for name in ("bos_token", "eos_token")} | special_tokens(checkpoint)
    said = rendered(text, request, special) if text else known[0] if known else None
    if said is None:
        raise Refused(f"{checkpoint.folder}: no chat template, and the tokenizer has the marks of no known one")
    if said.count(picture) != 1:
        raise Refused(f"the chat template names the picture {said.count(picture)} times, expected once as `{picture}`")
    before, after = said.split(picture)
    return before, after


def special_tokens(checkpoint: Checkpoint) -> dict[str, str]:
    found = checkpoint.json("tokenizer_config.json") or {}
    text = lambda value: value.get("content", "") if isinstance(value, dict) else value or ""  # noqa: E731
    return {name: text(found[name]) for name in ("bos_token", "eos_token") if name in found}
