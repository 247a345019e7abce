/* SPDX-License-Identifier: BSD-2-Clause */
/* The style sheet, for svg.c only. Classes, because some viewers do not support variables. */
#ifndef SOFTHCA_DRAW_SVG_STYLE_H
#define SOFTHCA_DRAW_SVG_STYLE_H

#define SANS "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
#define MONO "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"

/* Colours of entries, used cyclically: class, light fill and line, dark fill and line. */
#define ENTRY_COLOURS(COLOUR)                                                                                          \
	COLOUR("0", "#d6e8ff", "#3b7dd8", "#17335c", "#5b9cf5")                                                        \
	COLOUR("1", "#d9f2e3", "#2f9163", "#153d2b", "#4cc38a")                                                        \
	COLOUR("2", "#f4e3ff", "#8f4ec7", "#3b2352", "#b98ae8")                                                        \
	COLOUR("3", "#fdecc8", "#b7791f", "#4a3610", "#e0aa3e")                                                        \
	COLOUR("4", "#d3f1f4", "#1b8a99", "#103c43", "#45c1d2")                                                        \
	COLOUR("5", "#fbe0ee", "#c2417f", "#4b1d36", "#ee7fb2")

enum { ENTRY_COLOUR_COUNT = 6 };

#define LIGHT_COLOUR(class, fill, line, dark_fill, dark_line)                                                          \
	".e" class "{fill:" fill ";stroke:" line "}.b" class "{fill:" line "}\n"
#define DARK_COLOUR(class, fill, line, dark_fill, dark_line)                                                           \
	".e" class "{fill:" dark_fill ";stroke:" dark_line "}.b" class "{fill:" dark_line "}\n"

static const char svg_style[] =
	"<style>\n"
	"text{" SANS "font-size:13px;fill:#1f2328;white-space:pre}\n"
	".m{" MONO "font-size:12px}.s{font-size:10.5px}.h{font-size:19px;font-weight:600}\n"
	".k{font-size:14px;font-weight:600}.q{fill:#59636e}.r{fill:#cf222e}.g{fill:#1a7f37}\n"
	".halo{stroke:#fff;stroke-width:4px;paint-order:stroke;stroke-linejoin:round}\n"
	".bg{fill:#fff}.box{fill:#f6f8fa;stroke:#d1d9e0}.dots{fill:none;stroke:#818b98;"
	"stroke-dasharray:3 3}\n"
	".bad{fill:#ffdcd7;stroke:#cf222e;stroke-width:1.6}.badband{fill:#cf222e}"
	".want{fill:#cf222e}\n"
	".card{fill:#fff1ef;stroke:#cf222e}.field{fill:#fff8c5;stroke:#9a6700}\n" ENTRY_COLOURS(
		LIGHT_COLOUR) "@media (prefers-color-scheme:dark){\n"
			      "text{fill:#e6edf3}.q{fill:#9198a1}.r{fill:#ff7b72}.g{fill:#3fb950}"
			      ".halo{stroke:#0d1117}\n"
			      ".bg{fill:#0d1117}.box{fill:#161b22;stroke:#3d444d}.dots{stroke:#656c76}\n"
			      ".bad{fill:#5c1a1b;stroke:#ff7b72}.badband,.want{fill:#ff7b72}\n"
			      ".card{fill:#2d1214;stroke:#ff7b72}.field{fill:#3b2e0a;stroke:#d4a72c}\n" ENTRY_COLOURS(
				      DARK_COLOUR) "}\n</style>\n";

#endif
