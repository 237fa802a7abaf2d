"""Comments of the headers as text, from Doxygen's XML. `abi.py` says how the text is laid out."""
import re
import textwrap

INLINE = {"computeroutput": "`", "emphasis": "*", "bold": "**", "ref": "", "ulink": ""}
SYMBOLS = {"ndash": "--", "mdash": "---"}


def _inline(node):
    """The text of an element within a paragraph, on one line, without what follows the element."""
    if node.tag in SYMBOLS:
        return SYMBOLS[node.tag]
    if node.tag not in INLINE:
        raise SystemExit(f"comments.py does not know Doxygen's <{node.tag}>")
    mark = INLINE[node.tag]
    return mark + (node.text or "") + "".join(_inline(child) + (child.tail or "") for child in node) + mark


def _squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def _items(node):
    for item in node:
        blocks = _blocks(item)
        yield "- " + "\n  ".join("\n".join(blocks).splitlines())


def _rows(node):
    rows = [["\n".join(_blocks(entry)) for entry in row] for row in node]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows]


def _paragraph(para):
    """The blocks of a paragraph: Doxygen puts code, lists and tables into the paragraph before them."""
    blocks, text = [], para.text or ""

    def end():
        nonlocal text
        if text.strip():
            blocks.append(_squeezed(text))
        text = ""

    for node in para:
        if node.tag in ("verbatim", "itemizedlist", "table", "simplesect", "parameterlist"):
            end()
        if node.tag == "verbatim":
            blocks.append(textwrap.indent(textwrap.dedent(node.text.strip("\n")), "    "))
        elif node.tag == "itemizedlist":
            blocks.append("\n".join(_items(node)))
        elif node.tag == "table":
            blocks.append("\n".join(_rows(node)))
        elif node.tag not in ("simplesect", "parameterlist"):
            text += _inline(node)
        text += node.tail or ""
    end()
    return blocks


def _blocks(node):
    return [block for para in node.findall("para") for block in _paragraph(para)]


def _lines(blocks):
    return "\n\n".join(blocks).splitlines()


def doc(node):
    """The lines of the comment of an element that has descriptions, without @param and @return."""
    return _lines(_blocks(node.find("briefdescription")) + _blocks(node.find("detaileddescription")))


def returns_doc(node):
    found = node.findall("detaileddescription//simplesect[@kind='return']")
    return _lines([block for part in found for block in _blocks(part)])


def parameter_docs(node):
    """{parameter: lines}"""
    return {item.findtext(".//parametername"): _lines(_blocks(item.find("parameterdescription")))
            for item in node.findall("detaileddescription//parameteritem")}
