"""How the app looks, in one place: colours, the theme, and the style of our own blocks."""

from __future__ import annotations

# Told apart by all eyes, on white and on near-black; neighbours in the list differ most.
COLOURS = (
    "#3b7dc4", "#e0873a", "#2a9d83", "#c4579a", "#8a8f2c", "#7a6bd0",
    "#d1495b", "#3aa6c9", "#9c6b3f", "#6a8f3f", "#b07cc6", "#7f8790",
)  # fmt: skip
QUIET = "#8b949e"
ACCENT = "#2f6fb3"

# Streamlit's own theme, for light and dark; the reader's system chooses.
THEME = {
    "theme.light.primaryColor": ACCENT,
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f5f7f9",
    "theme.light.textColor": "#1d2730",
    "theme.light.borderColor": "#dfe4e9",
    "theme.dark.primaryColor": "#6ea8e0",
    "theme.dark.backgroundColor": "#12171c",
    "theme.dark.secondaryBackgroundColor": "#1b2229",
    "theme.dark.textColor": "#e6ebf0",
    "theme.dark.borderColor": "#313b45",
    "theme.baseRadius": "8px",
    "theme.showWidgetBorder": "true",
    "theme.headingFontWeights": "[600, 600, 600]",
    "theme.headingFontSizes": "['1.75rem', '1.25rem', '1.05rem']",
}

# Blocks take the text's own colour, so that they suit light and dark alike.
BLOCKS = """
.v-soft{color:color-mix(in srgb,currentColor 66%,transparent)}
.v-lead{font-size:1.16rem;line-height:1.55;margin:.1rem 0 .35rem;overflow-wrap:anywhere}
.v-remark{font-size:.92rem;line-height:1.5;margin:0;color:color-mix(in srgb,currentColor 68%,transparent)}
.v-move{display:flex;align-items:center;gap:.6rem;flex-wrap:wrap;margin:0 0 .5rem;font-size:.92rem}
.v-chip{display:inline-flex;align-items:center;gap:.45rem;padding:.16rem .7rem .16rem .55rem;border-radius:99px;
 border:1px solid color-mix(in srgb,currentColor 18%,transparent);font-weight:500;overflow-wrap:anywhere}
.v-dot{width:.68rem;height:.68rem;border-radius:50%;flex:none;background:var(--c)}
.v-card{border:1px solid color-mix(in srgb,currentColor 15%,transparent);border-radius:10px;padding:1.05rem 1.2rem}
.v-no{border-left:4px solid #d08a2e}
.v-yes{border-left:4px solid var(--c)}
.v-changes{display:grid;grid-template-columns:minmax(7rem,1.2fr) minmax(9rem,1.3fr) minmax(4rem,.6fr) minmax(8rem,2fr);
 column-gap:1.2rem;align-items:center;font-size:.94rem}
.v-changes>*{padding:.46rem 0;border-bottom:1px solid color-mix(in srgb,currentColor 9%,transparent);min-height:2.35rem;
 display:flex;align-items:center;min-width:0;overflow-wrap:anywhere}
.v-changes>.v-h{font-size:.78rem;min-height:0;padding:.1rem 0 .35rem;color:color-mix(in srgb,currentColor 62%,transparent)}
.v-name{font-weight:500}
.v-num{font-variant-numeric:tabular-nums;gap:.4rem;flex-wrap:wrap}
.v-num b{font-weight:600}
.v-track{position:relative;height:1.1rem;flex:1}
.v-track i{position:absolute;top:50%;height:2px;margin-top:-1px;left:0;right:0;border-radius:2px;
 background:color-mix(in srgb,currentColor 15%,transparent)}
.v-track u{position:absolute;top:50%;height:4px;margin-top:-2px;border-radius:2px;background:var(--c)}
.v-track s{position:absolute;top:50%;width:.62rem;height:.62rem;margin:-.31rem 0 0 -.31rem;border-radius:50%;
 box-sizing:border-box;border:2px solid currentColor;background:color-mix(in srgb,currentColor 20%,transparent);opacity:.7}
.v-track em{position:absolute;top:50%;width:.8rem;height:.8rem;margin:-.4rem 0 0 -.4rem;border-radius:50%;background:var(--c)}
.v-facts{display:flex;flex-wrap:wrap;gap:.75rem 2.6rem;margin:.1rem 0 .4rem}
.v-facts div{display:flex;flex-direction:column}
.v-facts b{font-size:1.45rem;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}
.v-facts span{font-size:.84rem;color:color-mix(in srgb,currentColor 64%,transparent)}
.v-traits{display:grid;grid-template-columns:minmax(0,1fr) auto;gap:.3rem .8rem;font-size:.92rem;margin:.5rem 0 0}
.v-traits span{overflow-wrap:anywhere}
.v-traits .v-val{text-align:right;font-variant-numeric:tabular-nums;font-weight:500}
.v-traits .v-all{grid-column:1/-1;margin-top:-.28rem;padding-bottom:.28rem;font-size:.81rem;
 color:color-mix(in srgb,currentColor 60%,transparent);border-bottom:1px solid color-mix(in srgb,currentColor 8%,transparent)}
.v-traits .v-all:last-child{border-bottom:0}
.v-share{height:5px;border-radius:3px;background:color-mix(in srgb,currentColor 10%,transparent);margin:.45rem 0 .1rem}
.v-share i{display:block;height:100%;border-radius:3px;background:var(--c)}
.v-bars{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr max-content;gap:.3rem .8rem;align-items:center;font-size:.9rem}
.v-bars span{overflow-wrap:anywhere}
.v-bars .v-bar{height:.72rem;border-radius:3px;background:color-mix(in srgb,currentColor 8%,transparent)}
.v-bars .v-bar i{display:block;height:100%;border-radius:3px;background:var(--c)}
.v-bars .v-val{text-align:right;font-variant-numeric:tabular-nums}
.v-grid{border-collapse:separate;border-spacing:3px;font-size:.9rem;font-variant-numeric:tabular-nums}
.v-grid th{font-weight:500;text-align:left;padding:.25rem .6rem;font-size:.86rem;overflow-wrap:anywhere}
.v-grid td{padding:.42rem .7rem;border-radius:6px;text-align:center;min-width:5.2rem}
.v-grid td small{display:block;font-size:.76rem;opacity:.75}
.v-table{border-collapse:collapse;font-size:.87rem;width:100%;font-variant-numeric:tabular-nums}
.v-table th{font-weight:500;text-align:left;font-size:.8rem;color:color-mix(in srgb,currentColor 64%,transparent)}
.v-table th,.v-table td{padding:.36rem .8rem .36rem 0;border-bottom:1px solid color-mix(in srgb,currentColor 9%,transparent);
 vertical-align:top;white-space:nowrap}
.v-table .v-differs{font-weight:600;color:#c2571a}
.v-scroll{overflow-x:auto;max-width:100%}
.v-scroll p{white-space:normal}
@media (max-width:760px){.v-changes{grid-template-columns:minmax(0,1fr) minmax(0,1.1fr)}.v-changes .v-wide{display:none}}
"""

# Streamlit's frame, made calmer: a column of readable width, no decoration.
PAGE = """
.stMainBlockContainer{max-width:1280px;padding-top:4.6rem;padding-bottom:4rem}
[data-testid="stDecoration"],[data-testid="stStatusWidget"]{display:none}
[data-testid="stHeadingWithActionElements"] a{display:none}
[data-testid="stFileUploaderDropzone"]{min-height:5.2rem}
h1{padding:.2rem 0 .1rem!important} h2,h3{padding-top:.6rem!important}
[data-testid="stElementToolbar"] button{opacity:.75}
.stApp [data-stale="true"]{opacity:1!important;transition:none!important}
"""


def colour(segment: int) -> str:
    """Return the colour of a segment."""
    return COLOURS[segment % len(COLOURS)]
