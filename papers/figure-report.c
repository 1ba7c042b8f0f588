#include "papers/figure-report.h"

#include <math.h>
#include <string.h>

/* ---- text in both languages ---- */

static void markdown_text(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr("|*_<`[\\", text[i]))
            fputc('\\', out);
        fputc(text[i], out);
    }
}

static void html_text(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char *entity = text[i] == '&'   ? "&amp;"
                             : text[i] == '<' ? "&lt;"
                             : text[i] == '>' ? "&gt;"
                             : text[i] == '"' ? "&quot;"
                                              : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(text[i], out);
    }
}

static void text(const cs_figure_report *report, const char *words)
{
    markdown_text(report->markdown, words, strlen(words));
    html_text(report->html, words, strlen(words));
}

static void heading(const cs_figure_report *report, int level, const char *id, const char *words)
{
    fprintf(report->markdown, "\n%.*s ", level, "####");
    fprintf(report->html, "<h%d%s%s%s>", level, id ? " id=\"" : "", id ? id : "", id ? "\"" : "");
    text(report, words);
    fputs("\n", report->markdown);
    fprintf(report->html, "</h%d>\n", level);
}

static void paragraph(const cs_figure_report *report, const char *words)
{
    fputs("\n", report->markdown);
    fputs("<p>", report->html);
    text(report, words);
    fputs("\n", report->markdown);
    fputs("</p>\n", report->html);
}

static void picture(const cs_figure_report *report, const char *file, const char *words)
{
    fputs("\n![", report->markdown);
    markdown_text(report->markdown, words, strlen(words));
    fprintf(report->markdown, "](%s)\n", file);
    fprintf(report->html, "<p><img src=\"%s\" alt=\"", file);
    html_text(report->html, words, strlen(words));
    fputs("\"></p>\n", report->html);
}

/* Cells with tabs between. The first row has the names. */
static void row(const cs_figure_report *report, const char *cells, bool names)
{
    uint32_t n = 0;
    fputs("|", report->markdown);
    fputs("<tr>", report->html);
    for (const char *at = cells; at; n++) {
        const size_t length = strcspn(at, "\t");
        fputs(" ", report->markdown);
        markdown_text(report->markdown, at, length);
        fputs(" |", report->markdown);
        fprintf(report->html, names ? "<th>" : "<td>");
        html_text(report->html, at, length);
        fprintf(report->html, names ? "</th>" : "</td>");
        at = at[length] ? at + length + 1 : NULL;
    }
    fputs("\n", report->markdown);
    fputs("</tr>\n", report->html);
    for (uint32_t i = 0; names && i <= n; i++)
        fputs(i < n ? "|---" : "|\n", report->markdown);
}

static void begin_table(const cs_figure_report *report, const char *names)
{
    fputs("\n", report->markdown);
    fputs("<table>\n", report->html);
    row(report, names, true);
}

/* ---- claims ---- */

static const char *const relations[] = {[CS_IS] = "",
                                        [CS_ABOUT] = "about ",
                                        [CS_ABOVE] = "more than ",
                                        [CS_BELOW] = "less than ",
                                        [CS_UP_TO] = "up to "};

/* "-0.0" is 0. */
static double rounded(double value, int decimals)
{
    const double unit = pow(10, decimals);
    return round(value * unit) / unit + 0.;
}

static void write_claim(const cs_figure_report *report, const cs_paper_claim *claim)
{
    char paper[200], ours[64], difference[64], line[2048];
    const bool holds = cs_paper_claim_holds(claim);
    const bool number = claim->relation != CS_ABOVE && claim->relation != CS_BELOW;
    const int decimals = claim->decimals;
    snprintf(paper, sizeof(paper), "%s%s%s%.*f%s", relations[claim->relation],
             claim->form ? claim->form : "", claim->form ? " = " : "", decimals, claim->paper,
             claim->unit);
    /* one digit more than the paper has, where the two differ */
    const int digits = holds && number ? decimals : decimals + 1;
    snprintf(ours, sizeof(ours), "%.*f%s", digits, rounded(claim->ours, digits), claim->unit);
    if (!number || holds)
        snprintf(difference, sizeof(difference), "%s",
                 !number ? holds ? "holds" : "does not hold" : "none");
    else
        snprintf(difference, sizeof(difference), "%+.*f%s", digits,
                 rounded(claim->ours - claim->paper, digits),
                 strcmp(claim->unit, " %") == 0 ? " points" : claim->unit);
    snprintf(line, sizeof(line), "%s\t%s\t%s\t%s\t%s\t%s", claim->what, claim->place, paper,
             isnan(claim->ours) ? "-" : ours, isnan(claim->ours) ? "-" : difference,
             holds || !claim->why ? "" : claim->why);
    row(report, line, false);
}

uint32_t cs_figure_report_count(const cs_page *page, uint32_t *held)
{
    uint32_t n = 0;
    *held = 0;
    for (uint32_t b = 0; b < page->n_blocks; b++) {
        const cs_page_block *block = &page->blocks[b];
        for (uint32_t i = 0; block->kind == CS_BLOCK_CLAIMS && i < block->n; i++, n++)
            *held += cs_paper_claim_holds(&block->claims[i]);
    }
    return n;
}

/* ---- blocks ---- */

static void write_table(const cs_figure_report *report, const cs_page_block *block)
{
    paragraph(report, block->text);
    begin_table(report, block->rows[0]);
    for (uint32_t i = 1; i < block->n; i++)
        row(report, block->rows[i], false);
    fputs("</table>\n", report->html);
}

static void write_claims(const cs_figure_report *report, const cs_page_block *block)
{
    begin_table(report, "\twhere\tpaper\tours\tdifference\twhy");
    for (uint32_t i = 0; i < block->n; i++)
        write_claim(report, &block->claims[i]);
    fputs("</table>\n", report->html);
}

void cs_figure_report_page(const cs_figure_report *report, const cs_paper_figure *figure,
                           const cs_page *page, bool pictures)
{
    char title[256];
    snprintf(title, sizeof(title), "%s: %s", figure->id, figure->title);
    heading(report, 3, figure->id, title);
    for (uint32_t b = 0; b < page->n_blocks; b++) {
        const cs_page_block *block = &page->blocks[b];
        if (block->kind == CS_BLOCK_TEXT)
            paragraph(report, block->text);
        else if (block->kind == CS_BLOCK_CLAIMS)
            write_claims(report, block);
        else if (block->kind == CS_BLOCK_TABLE)
            write_table(report, block);
        else if (pictures)
            picture(report, block->picture, block->text);
    }
}

void cs_figure_report_paper(const cs_figure_report *report, const cs_paper *paper)
{
    heading(report, 2, NULL, paper->name);
    paragraph(report, paper->source);
    paragraph(report, paper->left_out);
}

static const char style[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Figures of five "
    "papers</title>\n<style>\n"
    "body { font: 15px/1.45 sans-serif; max-width: 1040px; margin: 2em auto; padding: 0 1em; }\n"
    "table { border-collapse: collapse; font-size: 13px; }\n"
    "th, td { border: 1px solid #aaa; padding: 3px 7px; text-align: left; vertical-align: top; }\n"
    "img { max-width: 100%; background: white; }\n"
    "@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } }\n"
    "</style>\n</head>\n<body>\n";

void cs_figure_report_begin(const cs_figure_report *report)
{
    fputs(style, report->html);
    fputs("# Figures of five papers\n", report->markdown);
    fputs("<h1>Figures of five papers</h1>\n", report->html);
    paragraph(report,
              "Each figure is computed anew from a scenario that is shipped. Of the papers only "
              "expected values are typed in; no parameter is set for a figure. \"none\": equal, as "
              "far as the paper's digits go.");
}

void cs_figure_report_end(const cs_figure_report *report)
{
    fputs("</body>\n</html>\n", report->html);
}
