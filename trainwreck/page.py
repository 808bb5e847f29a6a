"""Write a report as one HTML page that needs no network and no script."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from string import Template

from trainwreck import __version__
from trainwreck.catalogue import outcome_of
from trainwreck.finding import Finding, Report
from trainwreck.places import Place
from trainwreck.show import CONSEQUENCE, grouped, practise_command
from trainwreck.source import source_lines

_AROUND = 4  # lines of source before and after the line of a finding

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>trainwreck: $script</title>
<style>
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1a1d21; --soft: #59616b; --rule: #d5d9df;
  --line: #0067a8; --alarm: #a3261b; --advice: #7a5200; --note: #0b62a4; --mark: #fdf0d0; }
@media (prefers-color-scheme: dark) {
  :root { --page: #111418; --card: #1a1e24; --ink: #e7eaee; --soft: #a3acb7; --rule: #3a414b; --line: #5cb3f0;
    --alarm: #ff9d8f; --advice: #f2c76b; --note: #6db8f2; --mark: #433612; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  line-height: 1.5; font-family: system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 0; font-size: 1.1rem; }
p { margin: 0.4rem 0; }
.soft, dt, figcaption, .scale, .axis { color: var(--soft); font-size: 0.9rem; }
.card { margin: 1.2rem 0 0; padding: 0.9rem 1rem; background: var(--card); border: 1px solid var(--rule);
  border-left: 4px solid var(--tone, var(--rule)); border-radius: 6px; }
.alarm { --tone: var(--alarm); } .advice { --tone: var(--advice); } .note { --tone: var(--note); }
.level { color: var(--tone); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); align-items: baseline;
  gap: 0.2rem 0.9rem; margin: 0.6rem 0; }
dd { margin: 0; }
figure { margin: 0.8rem 0 0; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 0.86rem; }
pre { margin: 0.3rem 0 0; padding: 0.6rem 0.8rem; overflow-x: auto; border: 1px solid var(--rule); border-radius: 4px; }
pre code { display: block; width: max-content; min-width: 100%; }
pre code > * { display: block; }
mark { background: var(--mark); color: inherit; }
pre:focus-visible { outline: 3px solid var(--line); }
.plot { display: grid; grid-template: 12rem auto / auto minmax(0, 1fr); gap: 0.2rem 0.5rem; margin-top: 0.5rem; }
.scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right; }
svg { width: 100%; height: 100%; border: solid var(--rule); border-width: 0 0 1px 1px; overflow: visible; }
path { fill: none; stroke: var(--line); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.axis { grid-column: 2; display: flex; justify-content: space-between; }
@media (max-width: 32rem) { dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: 0.4rem; } }
</style>
</head>
<body>
<header>
<h1>$script</h1>
<p>$counts</p>
<p class="soft">trainwreck $version</p>
</header>
<main>
$main
</main>
</body>
</html>
""")

_FINDING = Template("""<article class="card $level">
<h2><span class="level">$level:</span> $name</h2>
<p>$meaning</p>
<dl>
$rows
</dl>
$source</article>""")

_CURVE = Template("""<figure class="card">
<figcaption>The loss of each watched update$remark</figcaption>
<div class="plot">
<div class="scale"><span>$most</span><span>$least</span></div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="$label">
<path vector-effect="non-scaling-stroke" d="$path"/>
</svg>
<div class="axis"><span>update 1</span><span>update $last</span></div>
</div>
</figure>""")


def page(report: Report) -> str:
    """Return the page of a report: a curve of the losses, the findings with their source lines, and what failed.

    The same report and the same source give the same page.
    """
    parts = [_trouble(f"{report.script} failed", report.failure)] if report.failure else []
    parts += [loss_curve(report.losses), *(_article(*group) for group in grouped(report.findings))]
    parts += [
        _trouble(f"The check {name} failed and was left out; this is a bug in trainwreck", error)
        for name, error in report.errors.items()
    ]
    return _fill(_PAGE, {"main": "\n".join(filter(None, parts))}, script=report.script, counts=report.counts(),
                 version=__version__)  # fmt: skip


def loss_curve(losses: Sequence[float]) -> str:
    """Return a figure with a curve of the losses, or "" if fewer than two of them are finite.

    The curve has a gap at a value that is not finite.
    """
    finite = [loss for loss in losses if math.isfinite(loss)]
    if len(finite) < 2:
        return ""
    least, most = min(finite), max(finite)
    gaps = len(losses) - len(finite)
    label = f"from {finite[0]:.3g} to {finite[-1]:.3g}, at least {least:.3g} and at most {most:.3g}"
    remark = f"; {gaps} of {len(losses)} values are not finite" if gaps else ""
    return _fill(_CURVE, {}, remark=remark, most=f"{most:.3g}", least=f"{least:.3g}", label=f"Loss {label}",
                 path=" ".join(_strokes(losses, least, most)), last=str(len(losses)))  # fmt: skip


def _strokes(losses: Sequence[float], least: float, most: float) -> Iterator[str]:
    """Yield a part of an SVG path for each run of finite losses, in a square of 100 by 100."""
    for is_finite, run in groupby(enumerate(losses), key=lambda pair: math.isfinite(pair[1])):
        if not is_finite:
            continue
        points = [
            # Halved, because the difference of two large floats may be infinite.
            (100 * number / (len(losses) - 1), 100 * ((most / 2 - loss / 2) / ((most / 2 - least / 2) or 1)))
            for number, loss in run
        ]
        yield f"M{' L'.join(f'{x:.2f} {y:.2f}' for x, y in points)}" + "h0" * (len(points) == 1)


def _article(finding: Finding, others: Sequence[Finding], is_consequence: bool) -> str:
    outcome = outcome_of(finding)
    place = finding.place
    rows = [
        ("Found", escape(finding.text)),
        ("Where", escape(f"{place} ({finding.when})")),
        *(("Also", escape(f"{other.place}: {other.text}")) for other in others),
        *([("Note", CONSEQUENCE)] if is_consequence else []),
        ("Fix", escape(outcome.cure)),
    ]
    if practise := practise_command(outcome):
        rows.append(("Practise", _element("code", practise)))
    listed = "\n".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
    source = _source(place) if place.line else ""
    return _fill(_FINDING, {"rows": listed, "source": source}, level=finding.level, name=finding.name,
                 meaning=outcome.meaning)  # fmt: skip


def _source(place: Place) -> str:
    """Return the lines around a place, with the line itself marked, or "" if the file cannot be read."""
    lines = source_lines(place.file)
    if not 0 < place.line <= len(lines):
        return ""
    first, last = max(1, place.line - _AROUND), min(len(lines), place.line + _AROUND)
    width = len(str(last))
    shown = [
        _element("mark" if number == place.line else "span", f"{number:>{width}}  {lines[number - 1].rstrip()}\n")
        for number in range(first, last + 1)
    ]
    title = _element("figcaption", place.file)
    return f'<figure>{title}<pre tabindex="0"><code>{"".join(shown)}</code></pre></figure>\n'


def _trouble(title: str, text: str) -> str:
    body = f'<pre tabindex="0">{_element("code", text.strip())}</pre>'
    return f'<section class="card alarm">{_element("h2", title)}{body}</section>'


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>"


def _fill(template: Template, html: dict[str, str], **texts: str) -> str:
    """Fill a template with parts that are HTML, and with texts, which are escaped."""
    return template.substitute(html, **{name: escape(text) for name, text in texts.items()})
