"""The report as one self-contained HTML page: no script, no file beside it, readable offline."""

from __future__ import annotations

import jinja2

from pai_install.report.model import Outcome
from pai_install.report.words import headline, host_word, took

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.grid { overflow-x: auto; }
.ok, .PASS { background: #2e7d3233; } .changed, .WARN { background: #f9a82544; }
.failed, .unreachable, .refused, .FAIL { background: #c6282855; } .left, .SKIP { background: #8882; }
.interrupted, .UNKNOWN { background: #6a1b9a44; }
.headline { font-size: 1.2rem; padding: .6rem 1rem; border-radius: .4rem; }
pre { background: #8882; padding: .6rem; overflow-x: auto; white-space: pre-wrap; }
details { margin: .4rem 0; } code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p class="headline {{ 'ok' if outcome.ok else 'failed' }}">{{ headline }} (exit code {{ exit_code }})</p>

<h2>Machines and phases</h2>
<div class="grid"><table>
<tr><th>machine</th><th>result</th>
{%- for phase in outcome.phases %}<th>{{ phase.title }}<br><small>{{ took(phase.duration_s) }}</small></th>{% endfor -%}
<th>tasks</th><th>changed</th><th>skipped</th></tr>
{% for host, counts in outcome.counts.items() -%}
<tr><td>{{ host }}</td><td class="{{ word(host) }}">{{ word(host) }}</td>
{%- for phase in outcome.phases %}{% set result = phase.hosts.get(host) -%}
<td{% if result %} class="{{ result.status.value }}" title="{{ result.why }}"{% endif %}>
{%- if result %}{{ result.status.value }}{% endif %}</td>{% endfor -%}
<td class="number">{{ counts.tasks }}</td><td class="number">{{ counts.changed }}</td>
<td class="number">{{ counts.skipped }}</td></tr>
{% endfor -%}
</table></div>

{% if outcome.failures %}<h2>Failures</h2>
{% for failure in outcome.failures -%}
<section>
<h3>{{ failure.host or 'Ansible' }}: {{ failure.task or 'login' }}</h3>
{% if failure.task_path %}<p><code>{{ failure.task_path }}</code></p>{% endif %}
<p>{{ failure.message }}</p>
{% if failure.cause %}<p><strong>Likely cause:</strong> {{ failure.cause }}</p>{% endif %}
{% if failure.remedy %}<p><strong>What to do:</strong> {{ failure.remedy }}</p>{% endif %}
{% if failure.evidence %}<details><summary>evidence</summary><pre>{{ failure.evidence }}</pre></details>{% endif %}
</section>
{% endfor %}{% endif %}

{%- if outcome.findings %}<h2>Checks</h2>
<table>
<tr><th>verdict</th><th>subject</th><th>check</th><th>message</th><th>seen</th><th>expected</th><th>what to do</th></tr>
{% for finding in outcome.findings -%}
<tr><td class="{{ finding.verdict.value }}">{{ finding.verdict.value }}</td><td>{{ finding.subject }}</td>
<td>{{ finding.id }}</td><td>{{ finding.message }}</td><td>{{ finding.value }}</td>
<td>{{ finding.expected }}</td><td>{{ finding.remedy }}</td></tr>
{% endfor -%}
</table>{% endif %}

{%- if changed %}<h2>Changes</h2>
{% for host, changes in changed.items() -%}
<details><summary>{{ host }}: {{ changes | length }}</summary><ul>
{% for change in changes %}<li>{{ change.task }} <code>{{ change.task_path }}</code> {{ took(change.duration_s) }}</li>
{% endfor %}</ul></details>
{% endfor %}{% endif %}

{%- if outcome.left %}<h2>Still to do</h2>
<ul>{% for host, titles in outcome.left.items() %}<li>{{ host }}: {{ titles | join(', ') }}</li>{% endfor %}</ul>
{% endif %}
</body>
</html>
"""


def html(outcome: Outcome, *, title: str) -> str:
    """The whole page; `title` names the site and the time of the run."""
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_PAGE)
    words = {host: host_word(outcome, host).value for host in outcome.counts}
    return template.render(
        title=title,
        outcome=outcome,
        headline=headline(outcome),
        exit_code=int(outcome.exit_code),
        word=words.__getitem__,
        took=took,
        changed=_changed(outcome),
    )


def _changed(outcome: Outcome) -> dict[str, list[object]]:
    """Host -> the tasks that changed something there, in order; only hosts with any."""
    changes: dict[str, list[object]] = {}
    for phase in outcome.phases:
        for host, result in phase.hosts.items():
            if result.changes:
                changes.setdefault(host, []).extend(result.changes)
    return changes
