"""The style sheet of a report: light or dark as the reader's system, light on paper."""

STYLE = """\
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--soft:#5b6675;--line:#dfe4ea;--wash:#f5f7fa;--accent:#1a6fb0;
--second:#c2570c;--good:#16794c;--bad:#b42318;--good-wash:#e3f4ea;--bad-wash:#fbe9e7;--ghost:#e8ecf1}
@media (prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e6eaf0;--soft:#9aa6b5;--line:#2c3540;--wash:#1a2029;
--accent:#6cb6f5;--second:#f0a05a;--good:#6fd3a0;--bad:#ff9085;--good-wash:#16301f;--bad-wash:#3a1d1a;--ghost:#222a34}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;-webkit-text-size-adjust:100%}
main{max-width:960px;margin:0 auto;padding:40px 20px 60px}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:0 0 8px}
h3{font-size:1rem;margin:24px 0 8px}
section{margin-top:44px}
p{margin:0 0 12px;max-width:72ch}
.lead{color:var(--soft);margin-bottom:20px}
.lead time{white-space:nowrap}
.means{background:var(--wash);border-left:3px solid var(--accent);padding:10px 14px;border-radius:0 6px 6px 0;
max-width:none;overflow-wrap:anywhere}
.note{color:var(--soft);font-size:.875rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;margin:0 0 20px;padding:0}
.tile{background:var(--wash);border-radius:8px;padding:12px 14px}
.tile b{display:block;font-size:1.5rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.8125rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:0;font-size:.9375rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin-bottom:12px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:nowrap;font-size:.8125rem}
td.n,th.n{text-align:right;white-space:nowrap}
td.l{overflow-wrap:break-word;min-width:9em}
.long{overflow-wrap:anywhere}
.soft{color:var(--soft)}
.means.warning{border-left-color:var(--second)}
td small{color:var(--soft);white-space:nowrap}
td.note{min-width:15em}
td.several{min-width:20em}
.metric{display:block;margin-top:2px}
nav{font-size:.875rem;margin:18px 0 0;display:flex;flex-wrap:wrap;gap:4px 18px}
nav a{color:var(--accent);text-decoration:none;white-space:nowrap}
nav a:hover,nav a:focus{text-decoration:underline}
svg{width:100%;height:auto;display:block}
.wide>svg{min-width:680px}
svg.metric{width:140px;height:14px}
svg text{fill:var(--soft);font-size:11px;font-family:inherit}
.axis{font-size:12px}.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:var(--line)}.diagonal{stroke:var(--soft);stroke-dasharray:4 4}
.line{fill:none;stroke-width:2}.line.accent,.line.precision{stroke:var(--accent)}.line.recall{stroke:var(--second)}
.line.f1{stroke:var(--good)}
.dot.accent,.dot.precision{fill:var(--accent)}.dot.recall{fill:var(--second)}.ghost{fill:var(--ghost)}
.track{fill:var(--ghost)}.bar{fill:var(--accent)}.whisker{stroke:var(--ink);stroke-width:1.2}
.legend{font-size:.875rem;color:var(--soft);display:flex;flex-wrap:wrap;gap:4px 18px}
.key{white-space:nowrap}
.key::before{content:"";display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px;
background:var(--ghost)}
.key.precision::before{background:var(--accent)}.key.recall::before{background:var(--second)}
.key.f1::before{background:var(--good)}
.beside{display:grid;grid-template-columns:minmax(260px,340px) minmax(0,1fr);gap:28px;align-items:start}
.example{border:1px solid var(--line);border-radius:8px;padding:14px 16px;margin-bottom:14px;break-inside:avoid}
.example h3{margin:0 0 6px;overflow-wrap:anywhere}
.kind{font-size:.75rem;font-weight:600;padding:2px 8px;border-radius:99px;margin-right:8px;background:var(--wash);
color:var(--soft);white-space:nowrap}
.kind.right{background:var(--good-wash);color:var(--good)}.kind.wrong{background:var(--bad-wash);color:var(--bad)}
.text{color:var(--soft);font-size:.9rem;overflow-wrap:anywhere;max-width:none}
.tags{margin:0;padding:0;list-style:none;font-size:.9rem}
.tags li{padding:3px 0;overflow-wrap:anywhere}
.given li{padding-left:5.4em;text-indent:-5.4em}
.tags .score{display:inline-block;min-width:4.2em;text-indent:0;color:var(--soft);font-variant-numeric:tabular-nums}
.hit{color:var(--good)}.miss{color:var(--bad)}
.why{color:var(--soft);font-size:.8125rem;display:block;text-indent:0}
.columns{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:20px}
.columns h4{margin:0 0 4px;font-size:.8125rem;color:var(--soft);font-weight:600}
footer{margin-top:56px;border-top:1px solid var(--line);padding-top:16px}
@media (max-width:640px){main{padding:24px 14px 40px}h1{font-size:1.5rem}
.beside,.columns{grid-template-columns:minmax(0,1fr)}th,td{padding:6px}th,th.n{white-space:normal}
dl{grid-template-columns:1fr}dd{margin-bottom:6px}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#ccc;--wash:#f4f4f4;--accent:#1a6fb0;
--second:#c2570c;--good:#16794c;--bad:#b42318;--good-wash:#e3f4ea;--bad-wash:#fbe9e7;--ghost:#e8ecf1}
main{max-width:none;padding:0}nav{display:none}body{font-size:11pt}h2,h3{break-after:avoid}tr,svg{break-inside:avoid}
table{font-size:9pt}th,td{padding:4px 6px}th,th.n{white-space:normal}.beside{grid-template-columns:240px minmax(0,1fr)}
.wide{overflow:visible}.wide>svg,td.note,td.several{min-width:0}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
