"""How predictions are judged, computed again from the points and their predictions, independently
of sim/study/validate: ranking of layouts, trends, verdicts, other tools. For tests and pages.

A row is (point, prediction): a point of the schema "truth/1", and its entry in `points` of
`sim validate --json`."""
import collections
import itertools
import json
import math
import statistics

NEAR = 0.05
GROUP = 4  # runs
TREND = 8
MEASURES = {'step_time': ('step_time_s', 'predicted_step_time_s', 'measured_step_time_s'),
            'allocated': ('peak_allocated_bytes', 'predicted_allocated_bytes',
                          'measured_allocated_bytes'),
            'reserved': ('peak_reserved_bytes', 'predicted_reserved_bytes',
                         'measured_reserved_bytes')}


def is_exact(point):
    return not str(point.get('quality') or '').startswith('C')


def timed(rows):
    return [(p, r) for p, r in rows if r['step_time_error'] is not None]


# ---- ranking ----

def group_of(point, dataset):
    model, hardware = point['model'], point['hardware']
    return (dataset, model.get('name') or '', model.get('layers') or 0, model.get('hidden') or 0,
            model.get('seq') or 0, hardware['gpu'], hardware.get('gpus') or 0,
            (point.get('batch') or {}).get('global') or 0, point['precision'])


def rule(point):
    parallel = point.get('parallel') or {}
    return (point.get('recompute') != 'none', (parallel.get('tp') or 1) * (parallel.get('pp') or 1),
            -(point['batch'].get('micro') or 1))


def kendall(keys, times):
    """Concordant less discordant pairs, over both; pairs equal in one do not count."""
    signs = [((a > b) - (a < b)) * ((s > t) - (s < t))
             for (a, s), (b, t) in itertools.combinations(zip(keys, times), 2)]
    counted = [sign for sign in signs if sign]
    return statistics.fmean(counted) if counted else None


def rank(rows):
    """Groups: (key, runs, tau, loss, tau of the rule, loss of the rule)."""
    groups = collections.defaultdict(list)
    for p, r in timed(rows):
        groups[group_of(p, r['dataset'])].append((r['predicted_step_time_s'], rule(p),
                                                  r['measured_step_time_s']))
    found = []
    for key, runs in sorted(groups.items()):
        predicted, rules, times = zip(*runs)
        tau = kendall(predicted, times)
        if len(runs) < GROUP or tau is None:
            continue
        loss = times[predicted.index(min(predicted))] / min(times) - 1
        rule_loss = times[rules.index(min(rules))] / min(times) - 1
        found.append((key, len(runs), tau, loss, kendall(rules, times) or 0, rule_loss))
    return found


def ranking(groups):
    """(groups, tau, loss, within, the same three of the rule): means."""
    return (len(groups), *(statistics.fmean(values) for values in (
        [g[2] for g in groups], [g[3] for g in groups], [g[3] <= NEAR for g in groups],
        [g[4] for g in groups], [g[5] for g in groups], [g[5] <= NEAR for g in groups])))


# ---- trends ----

def axes(point):
    """Of each axis the size, and what may differ with it."""
    parallel, batch = point.get('parallel') or {}, point.get('batch') or {}
    return {'tensor ranks': (parallel.get('tp'), {'tp', 'dp', 'sp', 'micro_batches'}),
            'pipeline ranks': (parallel.get('pp'), {'pp', 'dp', 'micro_batches'}),
            'micro-batch': (batch.get('micro'), {'micro', 'micro_batches'}),
            'GPUs': (point['hardware'].get('gpus'), {'gpus', 'dp', 'global'})}


def plain(value):
    """Without members that are null, and without those that follow from the layout."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None
                and not k.startswith(('stage_layers', 'head_on', 'network_'))}
    return value


def rest_of(point, differs):
    kept = {key: plain(point.get(key)) for key in
            ('model', 'precision', 'recompute', 'framework', 'options')}
    for section, keys in (('hardware', ('gpu', 'gpus')),
                          ('parallel', ('tp', 'pp', 'vpp', 'dp', 'cp', 'ep', 'sp', 'zero')),
                          ('batch', ('micro', 'micro_batches', 'global'))):
        kept.update({key: (point.get(section) or {}).get(key) for key in keys
                     if key not in differs})
    return json.dumps(kept, sort_keys=True)


def trend(rows, axis):
    """(slope per doubling, standard error or None, runs, groups), or None: too few runs."""
    groups = collections.defaultdict(list)
    for p, r in timed(rows):
        size, differs = axes(p)[axis]
        if size and is_exact(p):
            groups[r['dataset'], rest_of(p, differs)].append(
                (math.log2(size), math.log(r['predicted_step_time_s'] / r['measured_step_time_s'])))
    used = [runs for runs in groups.values() if len({x for x, _ in runs}) > 1]
    centred = [(x - statistics.fmean(a for a, _ in runs), y - statistics.fmean(b for _, b in runs))
               for runs in used for x, y in runs]
    if len(centred) < TREND:
        return None
    squares = sum(x * x for x, _ in centred)
    slope = sum(x * y for x, y in centred) / squares
    freedom = len(centred) - len(used) - 1
    rest = sum((y - slope * x) ** 2 for x, y in centred)
    return (slope, math.sqrt(rest / freedom / squares) if freedom > 0 else None, len(centred),
            len(used))


# ---- verdicts, and other tools ----

def verdicts(rows):
    """Counter of caught, missed, false_alarms, fitted."""
    counts = collections.Counter()
    for p, r in rows:
        measured = any(r[f'measured_{key}'] is not None for key in (
            'step_time_s', 'allocated_bytes', 'reserved_bytes', 'device_memory_bytes'))
        oom = p['measured'].get('oom')
        if r['state'] != 'predicted' or r['predicted_allocated_bytes'] is None or (
                oom is None and not measured):
            continue
        said = r['out_of_memory'] and not r['depends']
        counts[('caught' if said else 'missed') if oom else
               ('false_alarms' if said else 'fitted')] += 1
    return counts


def peers(rows):
    """{(tool, measure): [(our error, theirs)]}, absolute values."""
    found = collections.defaultdict(list)
    for p, r in rows:
        for tool, said in (p.get('peers') or {}).items():
            for measure, (key, predicted, measured) in MEASURES.items():
                if said.get(key) is not None and r[predicted] is not None \
                        and r[measured] is not None and (measure != 'step_time' or is_exact(p)):
                    found[tool, measure].append((abs(r[predicted] / r[measured] - 1),
                                                 abs(said[key] / r[measured] - 1)))
    return found
