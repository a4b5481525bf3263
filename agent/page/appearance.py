"""What the page looks like: one style sheet, for light and dark screens, for wide and narrow ones, and for paper."""

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #667085; --line: #d9dee7; --page: #fff; --shade: #f4f6f9;
  --request: #2457c5; --hear: #98a2b3; --hold: #b26a00; --refuse: #c0262d; --good: #1d7a46; --person: #7a2fb5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ef; --soft: #98a2b3; --line: #323a48; --page: #12161d;
  --shade: #1a202a; --request: #82aaff; --hear: #5c6778; --hold: #f0a94b; --refuse: #ff7b80; --good: #6fd39b;
  --person: #cf9bf5; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--page); font: 14px/1.45 system-ui, sans-serif; }
header { padding: 18px 24px 12px; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 4px; font-size: 19px; overflow-wrap: anywhere; }
h2 { margin: 0 0 10px; font-size: 13px; color: var(--soft); font-weight: 600; }
dl { display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 8px 0 0; }
dl div { display: flex; gap: 6px; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.completed { color: var(--good); } .failed, .aborted, .doom_loop { color: var(--refuse); }
.limit, .stopped, .open { color: var(--hold); }
.problem { margin: 10px 0 0; padding: 6px 10px; border-left: 3px solid var(--hold); background: var(--shade); }
main { display: grid; grid-template-columns: minmax(300px, 2fr) minmax(480px, 3fr); }
main > section { padding: 16px 24px; min-width: 0; }
.steps { border-left: 1px solid var(--line); overflow-x: auto; }
a { color: inherit; text-decoration: none; } a:hover { text-decoration: underline; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px/1.45 ui-monospace, monospace;
  unicode-bidi: plaintext; }
code { font: 12.5px ui-monospace, monospace; overflow-wrap: anywhere; }
.conversation > div { display: grid; grid-template-columns: 74px minmax(0, 1fr); margin-bottom: 8px; }
.conversation .label { color: var(--soft); font-size: 12px; padding-top: 1px; }
.conversation pre { max-height: 320px; overflow-y: auto; }
.conversation img { display: block; max-width: 100%; max-height: 320px; margin-top: 6px; }
.person .said { color: var(--person); font-weight: 600; } .agent .said pre { font: inherit; }
.person .said pre { font: inherit; font-weight: 600; }
.reasoning .said pre { color: var(--soft); font-style: italic; font-family: inherit; }
.call .said { border-left: 3px solid var(--request); padding-left: 8px; }
.output .said { border-left: 3px solid var(--line); padding-left: 8px; color: var(--soft); }
.refused .said { border-left: 3px solid var(--refuse); padding-left: 8px; color: var(--refuse); }
.error .said { color: var(--refuse); } .question .said { color: var(--hold); }
.end { border-top: 1px solid var(--line); padding-top: 8px; font-weight: 600; }
table { border-collapse: collapse; font-size: 12.5px; width: 100%; }
thead th { position: sticky; top: 0; background: var(--page); vertical-align: bottom; text-align: left;
  color: var(--soft); font-weight: 600; padding: 4px 6px; border-bottom: 1px solid var(--line); z-index: 1; }
th.lane { padding: 4px 0; width: 24px; text-align: center; font-weight: 500; }
th.lane span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
td { padding: 2px 0; text-align: center; border-left: 1px solid var(--shade); vertical-align: top; cursor: default; }
td.number { color: var(--soft); padding: 2px 6px; text-align: right; width: 40px; }
td.event { text-align: left; padding: 2px 6px; min-width: 250px; }
tr.begins td { border-top: 1px solid var(--line); } tr:hover td { background: var(--shade); }
tr:target td { background: color-mix(in srgb, var(--request) 16%, var(--page)); }
tr.refusal b { color: var(--refuse); } .of { color: var(--soft); font-family: ui-monospace, monospace; }
summary { cursor: pointer; list-style: none; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  max-width: 400px; }
details[open] summary { white-space: normal; overflow-wrap: anywhere; }
details ul { margin: 4px 0; padding-left: 18px; color: var(--soft); max-width: 400px; overflow-wrap: anywhere; }
details pre { max-height: 260px; max-width: 400px; overflow: auto; background: var(--shade); padding: 6px 8px; }
.closed { color: var(--soft); } .waits { color: var(--hold); } .holds { color: var(--hold); }
.heard { color: var(--hear); } .requested { color: var(--request); } .refused { color: var(--refuse); }
td.refused { font-weight: 700; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 0 12px; font-size: 12px; color: var(--soft); }
@media (max-width: 1000px) { main { grid-template-columns: minmax(0, 1fr); }
  .steps { border-left: 0; border-top: 1px solid var(--line); } }
@media (max-width: 600px) { header, main > section { padding-left: 14px; padding-right: 14px; }
  td.event { min-width: 0; padding: 2px 2px; } td.number { padding: 2px; width: 24px; }
  summary, details ul, details pre { max-width: 52vw; } th.lane { width: 18px; } }
@media print { thead th { position: static; } .conversation pre { max-height: none; } .steps { overflow: visible; } }
"""
