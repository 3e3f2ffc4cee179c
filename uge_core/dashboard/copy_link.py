"""A button that copies the page's address: who opens it sees the same choices."""

from __future__ import annotations

from collections.abc import Mapping

HTML = """<button type="button" class="copy"><span class="words">Copy link</span></button>"""
CSS = """.copy { font: inherit; font-size: 14px; color: var(--st-text-color); background: none; cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 8px); min-height: 40px; padding: 0 12px; }
.copy:hover { border-color: var(--st-primary-color); }
.copy:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; }"""
# Without a secure context, as on a plain address in a local network, there is no clipboard to write to: the address is
# selected in a field of its own and copied from there.
JS = """export default function (component) {
  const button = component.parentElement.querySelector(".copy"), words = button.querySelector(".words");
  const said = (text) => {
    words.textContent = text;
    setTimeout(() => { words.textContent = "Copy link"; }, 2000);
  };
  button.onclick = async () => {
    const address = window.location.href;
    try {
      await navigator.clipboard.writeText(address);
      said("Copied");
    } catch {
      const field = document.createElement("input");
      field.value = address;
      document.body.appendChild(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      said(done ? "Copied" : "Not copied");
    }
  };
}"""


def copy_link_assets() -> Mapping[str, str]:
    """What the component is made of."""
    return {"html": HTML, "css": CSS, "js": JS}
