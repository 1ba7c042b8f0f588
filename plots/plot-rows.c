#include "plots/plot-rows.h"

#include "plots/output.h"
#include "plots/sheet.h"

#include <math.h>

enum { MOST_LOOKS = 16, TALL_ROW = 44, LOW_ROW = 18, LABEL = 10 };

/* Top and bottom of a box within its row, whose height is 1; the rest separates the rows. */
static const double box_top = 0.06, box_bottom = 0.94;

typedef struct drawing {
    const cs_plot_rows *rows;
    cs_sheet *sheet;
    double unit;       /* unit of the time axis, in ps */
    double scale;      /* points per ps */
    double row_height; /* points */
} drawing;

static uint32_t colour_of(const cs_plot_look *look)
{
    uint32_t colour = cs_style_of(look->word)->colour;
    return look->dark ? cs_colour_shade(colour) : colour;
}

static void write_legend(const drawing *d)
{
    cs_legend_entry entries[MOST_LOOKS + 1];
    uint32_t n = d->rows->n_looks < MOST_LOOKS ? d->rows->n_looks : MOST_LOOKS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t colour = colour_of(&d->rows->looks[i]);
        entries[i] = (cs_legend_entry){
            .text = d->rows->looks[i].legend, .colour = colour, .other = colour, .exact = true};
    }
    entries[n] = (cs_legend_entry){.text = d->rows->remark, .exact = true};
    cs_sheet_legend(d->sheet, entries, n + 1);
}

/* Makes room for the longest name and note; a few rows are tall, many are low. */
static void lay_out(drawing *d)
{
    double names = 0, notes = 0;
    for (uint32_t i = 0; i < d->rows->n_rows; i++) {
        names = fmax(names, cs_sheet_text_width(d->rows->rows[i].name, CS_SHEET_FONT));
        notes = fmax(notes, cs_sheet_text_width(d->rows->rows[i].note, CS_SHEET_FONT));
    }
    cs_sheet *sheet = d->sheet;
    sheet->left = CS_SHEET_MARGIN + names + 4;
    sheet->right = CS_SHEET_MARGIN + notes + (notes > 0 ? 6 : 0);
    d->row_height = fmin(TALL_ROW, fmax(LOW_ROW, 900. / d->rows->n_rows));
    sheet->height = ceil(sheet->top + sheet->bottom + d->rows->n_rows * d->row_height);
    d->scale = fmax(sheet->width - sheet->left - sheet->right, 1) / (double)d->rows->until;
}

static void write_names(const drawing *d)
{
    cs_sheet *sheet = d->sheet;
    for (uint32_t i = 0; i < d->rows->n_rows; i++) {
        const cs_plot_row *row = &d->rows->rows[i];
        double middle = sheet->top + (i + 0.5) * d->row_height;
        cs_sheet_text(sheet, CS_SHEET_MARGIN, middle, CS_COLOUR_TEXT, row->name);
        if (*row->note)
            cs_sheet_text(sheet, sheet->width - sheet->right + 6, middle, CS_COLOUR_SUBTITLE,
                          row->note);
    }
}

static void write_label(const drawing *d, const cs_plot_row_box *box, FILE *out)
{
    double room = (double)(box->end - box->start) * d->scale - 2;
    bool two = d->row_height >= 2.6 * LABEL && *box->below;
    const char *lines[2] = {box->label, two ? box->below : ""};
    uint32_t colour = cs_colour_on(colour_of(&d->rows->looks[box->look]));
    for (int i = 0; i < 2; i++) {
        if (!*lines[i] || cs_sheet_text_width(lines[i], LABEL) > room)
            continue;
        double shift = two ? (i - 0.5) * 1.3 * LABEL / d->row_height : 0;
        fprintf(out, "%.15g %.6g ", (double)(box->start + (box->end - box->start) / 2) / d->unit,
                box->row + 0.5 + shift);
        cs_sheet_quote(out, lines[i]);
        fprintf(out, " %u\n", colour);
    }
}

static void write_boxes(const drawing *d)
{
    FILE *boxes = cs_gnuplot_file(d->sheet->job, "boxes.dat");
    FILE *labels = cs_gnuplot_file(d->sheet->job, "labels.dat");
    for (uint32_t i = 0; i < d->rows->n_boxes; i++) {
        const cs_plot_row_box *box = &d->rows->boxes[i];
        fprintf(boxes, "%.15g %.15g %.6g %.6g %u\n", (double)box->start / d->unit,
                (double)box->end / d->unit, box->row + box_top, box->row + box_bottom,
                colour_of(&d->rows->looks[box->look]));
        write_label(d, box, labels);
    }
}

static cs_status draw(const void *what, cs_gnuplot *job, const char *output, cs_error *error)
{
    static const cs_plot_options no_options = {.kind = "rows"};
    const cs_plot_rows *rows = what;
    cs_sheet sheet;
    drawing d = {.rows = rows, .sheet = &sheet};
    cs_sheet_init_plain(&sheet, &no_options, job);
    sheet.until = rows->until;
    sheet.n_devices = rows->n_rows;
    d.unit = cs_sheet_time_unit(&sheet);
    cs_sheet_title(&sheet, rows->title, rows->subtitle);
    write_legend(&d);
    lay_out(&d);
    write_names(&d);
    write_boxes(&d);
    cs_sheet_time_axis(&sheet, "");
    cs_gnuplot_number(job, "until", (double)rows->until / d.unit);
    cs_gnuplot_number(job, "label_size", LABEL);
    cs_gnuplot_number(job, "idle_colour", CS_COLOUR_IDLE);
    cs_gnuplot_number(job, "box_top", box_top);
    cs_gnuplot_number(job, "box_bottom", box_bottom);
    return cs_sheet_draw(&sheet, output, "rows.gp", error);
}

cs_status cs_plot_rows_draw(const cs_plot_rows *rows, const char *output, cs_error *error)
{
    return cs_plot_output(draw, rows, output, error);
}
