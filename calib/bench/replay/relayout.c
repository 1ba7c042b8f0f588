#include "calib/bench/replay/relayout.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT = sizeof(float) };

/* A tensor during the exchanges. */
typedef struct carried {
    cs_tensor_layout layout;
    const float *data;
    float *own; /* `data` if it must be freed, else NULL */
} carried;

typedef struct mover {
    const cs_relayout *r;
    cs_wire *wire;
    const cs_relayout_link *link;
    cs_error *error;
} mover;

/* ---- boxes: a range of one dimension of a tensor, and all of the others ---- */

typedef struct box {
    int64_t outer, size, inner; /* numbers before, in and after the dimension */
    int64_t first, n;
} box;

static cs_shape local_shape(const mover *m, const cs_tensor_layout *layout)
{
    return cs_layout_local(layout, &m->r->shape, m->r->split, m->r->place);
}

static int64_t numbers_of(const mover *m, const cs_tensor_layout *layout)
{
    const cs_shape shape = local_shape(m, layout);
    return m->r->batch * cs_shape_elements(&shape);
}

static box box_of(const mover *m, const cs_tensor_layout *layout, uint32_t dim)
{
    const cs_shape shape = local_shape(m, layout);
    box b = {.outer = m->r->batch, .size = shape.dims[dim], .inner = 1, .n = shape.dims[dim]};
    for (uint32_t i = 0; i < shape.rank; i++)
        *(i < dim ? &b.outer : &b.inner) *= i == dim ? 1 : shape.dims[i];
    return b;
}

static int64_t count(const box *b)
{
    return b->outer * b->n * b->inner;
}

/* Returns part k of n of the dimension. */
static box part_of(box b, uint32_t n, uint32_t k)
{
    b.first = cs_part_first((uint32_t)b.size, n, k);
    b.n = cs_part_size((uint32_t)b.size, n, k);
    return b;
}

static void pack(const box *b, const float *tensor, float *packed)
{
    const size_t run = (size_t)(b->n * b->inner);
    for (int64_t o = 0; o < b->outer; o++)
        memcpy(packed + o * (int64_t)run, tensor + (o * b->size + b->first) * b->inner,
               run * sizeof(*packed));
}

/* Packs all parts of a dimension one after another; `back`: unpacks them. */
static void pack_all(box b, uint32_t n, const float *from, float *to, int64_t *counts, bool back)
{
    int64_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        const box part = part_of(b, n, k);
        counts[k] = count(&part);
        if (back) {
            const float *packed = from + at;
            const size_t run = (size_t)(part.n * part.inner);
            for (int64_t o = 0; o < part.outer; o++)
                memcpy(to + (o * part.size + part.first) * part.inner, packed + o * (int64_t)run,
                       run * sizeof(*packed));
        } else
            pack(&part, from, to + at);
        at += counts[k];
    }
}

/* ---- views ---- */

/* The rows of a tensor in a view, which may have gaps between them. */
typedef struct rows {
    int64_t samples, n, columns;
} rows;

static rows rows_of(const mover *m, const cs_tensor_layout *layout)
{
    const cs_shape shape = local_shape(m, layout);
    const int64_t columns = shape.dims[shape.rank - 1];
    return (rows){m->r->batch, cs_shape_elements(&shape) / columns, columns};
}

static bool has_gaps(const rows *r, const cs_view *view)
{
    return (r->n > 1 && view->row_stride != r->columns) ||
           (r->samples > 1 && view->sample_stride != r->n * r->columns);
}

static void copy_rows(const rows *r, const cs_view *view, float *dense, bool to_view)
{
    for (int64_t s = 0; s < r->samples; s++)
        for (int64_t i = 0; i < r->n; i++) {
            float *row = (float *)view->data + s * view->sample_stride + i * view->row_stride;
            float *packed = dense + (s * r->n + i) * r->columns;
            memcpy(to_view ? row : packed, to_view ? packed : row,
                   (size_t)r->columns * sizeof(*row));
        }
}

/* ---- steps ---- */

static cs_status allocate(mover *m, int64_t n, float **made)
{
    *made = malloc((size_t)(n > 0 ? n : 1) * sizeof(**made));
    return *made ? CS_OK : cs_error_no_memory(m->error);
}

static void replace(carried *now, float *data, const cs_tensor_layout *layout)
{
    free(now->own);
    *now = (carried){*layout, data, data};
}

static cs_axes axes_of(const mover *m, cs_layout_axis axis)
{
    return cs_grid_axes(&m->r->split->grid, cs_layout_axes(axis));
}

/* Takes this place's part of a tensor that is whole on the axis, or of a part that is divided
 * further. */
static cs_status cut(mover *m, carried *now, cs_layout_axis axis, cs_division to)
{
    const cs_axes axes = axes_of(m, axis);
    const box b =
        part_of(box_of(m, &now->layout, to.dim), axes.size, cs_axes_coordinate(axes, m->r->place));
    cs_tensor_layout layout = now->layout;
    float *made;
    layout.axes[axis] = to;
    CS_TRY(allocate(m, count(&b), &made));
    pack(&b, now->data, made);
    replace(now, made, &layout);
    return CS_OK;
}

static cs_status sum(mover *m, carried *now, const cs_wire_group *group, float *data)
{
    const int64_t n = numbers_of(m, &now->layout);
    float *into = data;
    if (!into)
        CS_TRY(allocate(m, n, &into));
    if (into != now->data)
        memcpy(into, now->data, (size_t)n * sizeof(*into));
    const cs_status status = cs_wire_sum(m->wire, group, into, n * FLOAT, m->error);
    if (!data)
        replace(now, into, &now->layout);
    else
        now->data = data;
    return status;
}

/* Packed parts, to be moved and unpacked. */
typedef struct parts {
    cs_cost_collective collective;
    uint32_t n;
    int64_t *counts, *got;
    float *packed, *came, *made;
} parts;

static cs_status gather(mover *m, carried *now, const cs_tensor_layout *layout, cs_division from,
                        const cs_wire_group *group, parts *p)
{
    const box whole = box_of(m, layout, from.dim);
    CS_TRY(allocate(m, count(&whole), &p->came));
    CS_TRY(allocate(m, count(&whole), &p->made));
    for (uint32_t k = 0; k < p->n; k++) {
        const box part = part_of(whole, p->n, k);
        p->counts[k] = count(&part);
    }
    CS_TRY(cs_wire_parts_move(m->wire, group, CS_COST_ALL_GATHER,
                              &(cs_wire_parts){p->n, p->counts, NULL}, now->data, p->came,
                              m->error));
    pack_all(whole, p->n, p->came, p->made, p->counts, true);
    return CS_OK;
}

static cs_status scatter(mover *m, carried *now, const cs_tensor_layout *layout, cs_division to,
                         const cs_wire_group *group, parts *p)
{
    const box whole = box_of(m, &now->layout, to.dim);
    CS_TRY(allocate(m, count(&whole), &p->packed));
    CS_TRY(allocate(m, numbers_of(m, layout), &p->made));
    pack_all(whole, p->n, now->data, p->packed, p->counts, false);
    return cs_wire_parts_move(m->wire, group, CS_COST_REDUCE_SCATTER,
                              &(cs_wire_parts){p->n, p->counts, NULL}, p->packed, p->made,
                              m->error);
}

/* Gives a part of one dimension to each member, and gets parts of another. */
static cs_status swap(mover *m, carried *now, const cs_tensor_layout *layout,
                      const cs_division ends[2], const cs_wire_group *group, parts *p)
{
    const box before = box_of(m, &now->layout, ends[1].dim);
    const box behind = box_of(m, layout, ends[0].dim);
    CS_TRY(allocate(m, count(&before), &p->packed));
    CS_TRY(allocate(m, count(&behind), &p->came));
    CS_TRY(allocate(m, count(&behind), &p->made));
    pack_all(before, p->n, now->data, p->packed, p->counts, false);
    for (uint32_t k = 0; k < p->n; k++) {
        const box part = part_of(behind, p->n, k);
        p->got[k] = count(&part);
    }
    CS_TRY(cs_wire_parts_move(m->wire, group, CS_COST_ALL_TO_ALL,
                              &(cs_wire_parts){p->n, p->counts, p->got}, p->packed, p->came,
                              m->error));
    pack_all(behind, p->n, p->came, p->made, p->got, true);
    return CS_OK;
}

static cs_status move(mover *m, carried *now, cs_layout_axis axis, cs_exchange_kind kind,
                      const cs_wire_group *group)
{
    const cs_division ends[2] = {now->layout.axes[axis], m->r->to.axes[axis]};
    cs_tensor_layout layout = now->layout;
    parts p = {.n = axes_of(m, axis).size};
    layout.axes[axis] = ends[1];
    p.counts = calloc(2 * (size_t)p.n, sizeof(*p.counts));
    if (!p.counts)
        return cs_error_no_memory(m->error);
    p.got = p.counts + p.n;
    cs_status status = kind == CS_EXCHANGE_ALL_GATHER ? gather(m, now, &layout, ends[0], group, &p)
                       : kind == CS_EXCHANGE_REDUCE_SCATTER
                           ? scatter(m, now, &layout, ends[1], group, &p)
                           : swap(m, now, &layout, ends, group, &p);
    free(p.counts);
    free(p.packed);
    free(p.came);
    if (status == CS_OK)
        replace(now, p.made, &layout);
    else
        free(p.made);
    return status;
}

/* ---- one axis ---- */

/* Returns the bytes of an exchange, as defined for cs_exchange_kind. */
static int64_t bytes_of(const mover *m, const carried *now, cs_layout_axis axis,
                        cs_exchange_kind kind)
{
    cs_tensor_layout behind = now->layout;
    behind.axes[axis] = m->r->to.axes[axis];
    const int64_t before = numbers_of(m, &now->layout), after = numbers_of(m, &behind);
    return FLOAT * (kind == CS_EXCHANGE_ALL_TO_ALL   ? (before > after ? before : after)
                    : kind == CS_EXCHANGE_ALL_GATHER ? after
                                                     : before);
}

/* Exchanges along one axis. `data`: memory for a result of the same size; or NULL. */
static cs_status go_along(mover *m, carried *now, cs_layout_axis axis, float *data)
{
    const cs_division from = now->layout.axes[axis], to = m->r->to.axes[axis];
    const cs_wire_group *group = NULL;
    cs_exchange_kind kind;
    if (axes_of(m, axis).size == 1 || !cs_division_exchange(axis, from, to, &kind)) {
        now->layout.axes[axis] = to;
        return CS_OK;
    }
    if (from.part > CS_PARTIAL || to.part > CS_PARTIAL || from.copies > 1 || to.copies > 1)
        return cs_error_add(m->error, CS_FAILED, "rows of experts and copies cannot be exchanged");
    CS_TRY(m->link->begin(m->link->context, kind, cs_layout_axes(axis),
                          bytes_of(m, now, axis, kind), &group, m->error));
    if (kind == CS_EXCHANGE_ALL_REDUCE)
        CS_TRY(sum(m, now, group, data));
    else
        CS_TRY(move(m, now, axis, kind, group));
    now->layout.axes[axis] = to;
    return m->link->end(m->link->context, m->error);
}

/* Divides the whole dimensions, before all exchanges. */
static cs_status cut_all(mover *m, carried *now)
{
    const cs_tensor_layout target = cs_layout_cut(&m->r->from, &m->r->to);
    for (int i = 0; i < CS_N_LAYOUT_AXES; i++) {
        const cs_layout_axis axis = (cs_layout_axis)i;
        if (cs_division_equal(now->layout.axes[i], target.axes[i]))
            continue;
        if (axes_of(m, axis).size > 1 && target.axes[i].part == CS_DIVIDED)
            CS_TRY(cut(m, now, axis, target.axes[i]));
        now->layout.axes[i] = target.axes[i];
    }
    return CS_OK;
}

static cs_status go(mover *m, carried *now, const cs_view *to)
{
    const rows behind = rows_of(m, &m->r->to);
    const bool fits =
        !has_gaps(&behind, to) && numbers_of(m, &m->r->from) == numbers_of(m, &m->r->to);
    CS_TRY(cut_all(m, now));
    for (int i = 0; i < CS_N_LAYOUT_AXES; i++)
        CS_TRY(go_along(m, now, (cs_layout_axis)(m->r->backward ? CS_N_LAYOUT_AXES - 1 - i : i),
                        fits && !now->own ? to->data : NULL));
    if (now->data != to->data)
        copy_rows(&behind, to, (float *)(uintptr_t)now->data, true);
    return CS_OK;
}

cs_status cs_relayout_run(const cs_relayout *r, cs_wire *wire, const cs_relayout_link *link,
                          const cs_view *from, const cs_view *to, cs_error *error)
{
    mover m = {r, wire, link, error};
    const rows before = rows_of(&m, &r->from);
    carried now = {.layout = r->from, .data = from->data};
    cs_status status = CS_OK;
    if (has_gaps(&before, from)) {
        status = allocate(&m, before.samples * before.n * before.columns, &now.own);
        if (status == CS_OK)
            copy_rows(&before, from, now.own, false);
        now.data = now.own;
    }
    if (status == CS_OK)
        status = go(&m, &now, to);
    free(now.own);
    return status;
}
