/* SPDX-License-Identifier: BSD-2-Clause */
/* Style and script of the page of `softhca report`; for report_html.c only. It asks the network for nothing. */
#ifndef SOFTHCA_TOOL_REPORT_STYLE_H
#define SOFTHCA_TOOL_REPORT_STYLE_H

static const char page_head[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>softhca report</title>\n<style>\n"
	":root{--fg:#1f2328;--bg:#fff;--soft:#59636e;--line:#d1d9e0;--box:#f6f8fa;--link:#0969da;--bar:#3b7dd8;--bad:#cf222e}\n"
	"@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#9198a1;--line:#3d444d;--box:#161b22;"
	"--link:#4493f8;--bar:#5b9cf5;--bad:#ff7b72}}\n"
	"body{margin:0 auto;max-width:1060px;padding:0 20px 60px;background:var(--bg);color:var(--fg);"
	"font:14px/1.45 system-ui,sans-serif}\n"
	"h1{font-size:22px;margin:24px 0 8px}h2{font-size:17px;margin:34px 0 8px}a{color:var(--link)}\n"
	"header{position:sticky;top:0;background:var(--bg);border-bottom:1px solid var(--line);padding:8px 0;display:flex;"
	"gap:14px;flex-wrap:wrap;align-items:center;z-index:1}\n"
	"input{font:inherit;color:inherit;background:var(--box);border:1px solid var(--line);border-radius:6px;padding:5px "
	"10px;width:260px}\n"
	"table{border-collapse:collapse;width:100%}td,th{padding:4px 8px;border-top:1px solid "
	"var(--line);text-align:left;vertical-align:top}\n"
	"td,pre,code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}td{overflow-wrap:anywhere}td:first-child{overflow-wrap:normal}\n"
	"pre{overflow:auto;background:var(--box);padding:10px;border-radius:6px}figure{margin:0 0 22px;border:1px solid "
	"var(--line);border-radius:8px;padding:10px}\n"
	"figcaption,.soft{color:var(--soft)}img{max-width:100%;display:block}[hidden]{display:none!important}\n"
	".bars{display:inline-flex;align-items:flex-end;height:34px;gap:1px}.bars i{width:9px;background:var(--bar);min-height:1px}\n"
	".lane{display:flex;gap:10px;padding:4px 0;border-top:1px solid var(--line)}.lane b{flex:0 0 190px;font-weight:400;font-size:12px}\n"
	".lane small{color:var(--soft);display:block;font-size:11px}.lane span{position:relative;flex:1;height:44px;background:var(--box)}\n"
	".lane i{position:absolute;height:6px;min-width:2px;background:var(--bar)}.lane i.poll{height:2px;min-width:1px;background:var(--soft)}\n"
	".lane i.bad{background:var(--bad)}\n"
	"</style>\n</head>\n<body>\n<h1>softhca report</h1>\n";

/* A row stays if it has the text of the filter; the part of the address behind # is one, too. */
static const char page_script[] =
	"<script>\n"
	"const filter = document.getElementById('filter');\n"
	"const sections = [...document.querySelectorAll('section')];\n"
	"function apply() {\n"
	"  const wanted = filter.value.trim().toLowerCase();\n"
	"  for (const section of sections) {\n"
	"    const rows = [...section.querySelectorAll('.row')];\n"
	"    let shown = 0;\n"
	"    for (const row of rows) {\n"
	"      row.hidden = wanted !== '' && !row.textContent.toLowerCase().includes(wanted);\n"
	"      shown += !row.hidden;\n"
	"    }\n"
	"    section.querySelector('.shown').textContent = shown + ' of ' + rows.length;\n"
	"  }\n"
	"}\n"
	"filter.addEventListener('input', apply);\n"
	"const asked = new URLSearchParams(location.hash.slice(1)).get('filter');\n"
	"if (asked !== null) filter.value = asked;\n"
	"apply();\n"
	"</script>\n</body>\n</html>\n";

#endif
