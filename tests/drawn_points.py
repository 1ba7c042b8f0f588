"""Measured points that nobody measured, drawn over the schema "truth/1": models, GPUs, meshes,
batches, precisions, recomputation, schedules, options and frameworks, edge values among them.

`draw(seed)` gives one point; the same seed gives the same point. `alike(point, **changes)` is the
same with other values, as pointers into it: `{'batch/micro': 2}`. The measured value is a second:
nothing is compared with it.
"""
import copy
import random

# What points call GPUs, their description in `devices`, GPUs of a node.
GPUS = {
    'A100-SXM4-80GB': ('a100', 8), 'A100-SXM4-40GB': ('a100-40gb', 8),
    'A100-PCIe-80GB': ('a100-80gb-pcie', 8),
    'H100-SXM5-80GB': ('h100', 8), 'H100 96GB HBM2e (Grand Teton, 500 W)': ('h100-96gb', 8),
    'H200-SXM-141GB': ('h200', 8),
    'B200-SXM-180GB': ('b200', 8), 'B300-SXM-288GB': ('b300', 8), 'GB200 (NVL72)': ('gb200', 4),
    'GB300 (NVL72)': ('gb300', 4),
    'L40S-48GB': ('l40s', 8), 'RTX 4090': ('rtx-4090', 8), 'MI300X-192GB': ('mi300x', 8),
    'MI325X-256GB': ('mi325x', 8),
    'MI355X-288GB': ('mi355x', 8), 'AMD_Instinct_MI250': ('mi250', 1), 'Tesla P40 24GB': ('p40', 8),
    'V100-SXM2-16GB': ('v100', 8), 'Tesla V100-PCIE-32GB': ('v100-pcie', 8), 'NVIDIA L4': ('l4', 8),
    'Tesla T4': ('t4', 8),
    'Tesla P100-PCIE-16GB': ('p100-pcie', 8), 'NVIDIA H100 80GB HBM3': ('h100', 8),
    'Radeon VII': ('radeon-vii', 1),
    'H800-SXM5-80GB': ('h800', 8), 'NVIDIA A800-SXM4-80GB': ('a800', 8), 'NVIDIA H20': ('h20', 8),
    'NVIDIA H100 PCIe': ('h100-pcie', 8),
    'NVIDIA H100 NVL': ('h100-nvl', 8), 'NVIDIA A40': ('a40', 8),
    'NVIDIA GeForce RTX 3090': ('rtx-3090', 8),
    'NVIDIA GeForce RTX 5090': ('rtx-5090', 8), 'Tesla P100-SXM2-16GB': ('p100', 1),
}
FRAMEWORKS = [
    'Megatron-LM', 'Megatron-LM (dev)', 'Megatron-LM 2.0', 'Megatron-LM (zero-bubble fork)',
    'Megatron-DeepSpeed', 'Megatron-Bridge 26.02', 'NeMo 24.07',
    'LiBai', 'Composer (llm-foundry)', 'PyTorch FSDP', 'PyTorch DDP', 'PyTorch eager', 'torchtitan',
    'torchgpipe',
    'MaxText (JAX/XLA)', 'PaxML', 'Lightning', None,
]


def dense(name, layers, hidden, heads, kv_heads, ffn, vocab, seq, act='swiglu', norm='rmsnorm',
          pos='rope', **more):
    return {'name': name, 'kind': 'decoder', 'layers': layers, 'hidden': hidden, 'heads': heads,
            'kv_heads': kv_heads,
            'ffn': ffn, 'vocab': vocab, 'seq': seq, 'act': act, 'norm': norm, 'pos': pos, **more}


def experts(name, of, topk, moe_ffn, *sizes, **more):
    return {**dense(name, *sizes, **more), 'kind': 'decoder-moe', 'experts': of, 'topk': topk,
            'moe_ffn': moe_ffn}


GPT = {'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned', 'bias': True, 'tied': True}
LATENT = {'q_lora_rank': 1536, 'kv_lora_rank': 512, 'qk_head_dim': 128, 'qk_pos_emb_head_dim': 64,
          'v_head_dim': 128}
# Of many layers a few: they are alike.
MODELS = [
    dense('llama-3-8b', 8, 4096, 32, 8, 14336, 128256, 8192),
    dense('llama-3-70b', 8, 8192, 64, 8, 28672, 128256, 4096),
    dense('llama-2-13b', 10, 5120, 40, 40, 13824, 32000, 4096),
    dense('mistral-7b', 8, 4096, 32, 8, 14336, 32000, 8192, sliding_window=4096),
    dense('gemma-2-9b', 6, 3584, 16, 8, 14336, 256000, 8192, act='geglu', head_dim=256, tied=True,
          sliding_window=4096,
          sliding_every=2),
    dense('qwen-2.5-7b', 8, 3584, 28, 4, 18944, 152064, 4096, bias=True),
    dense('nemotron-4-15b', 8, 6144, 48, 8, 24576, 256000, 4096, act='squared_relu',
          norm='layernorm'),
    dense('falcon-7b', 8, 4544, 71, 1, 18176, 65024, 2048, act='gelu', norm='layernorm', tied=True),
    dense('bloom-7b', 6, 4096, 32, 32, 16384, 250880, 2048, **{**GPT, 'pos': 'alibi'}),
    dense('gpt-3-175b', 4, 12288, 96, 96, 49152, 51200, 2048, **GPT),
    dense('gpt-2', 12, 768, 12, 12, 3072, 50257, 1024, **GPT),
    dense('opt-2.7b', 8, 2560, 32, 32, 10240, 50272, 2048, **GPT),
    dense('tiny', 2, 64, 4, 2, 256, 1000, 64),
    experts('mixtral-8x7b', 8, 2, 14336, 4, 4096, 32, 8, 14336, 32000, 4096),
    experts('qwen3-30b-a3b', 128, 8, 768, 8, 2048, 32, 4, 6144, 151936, 4096, head_dim=128,
            qk_norm=True),
    experts('gpt-oss-20b', 32, 4, 2880, 6, 2880, 64, 8, 2880, 201088, 4096, head_dim=64, bias=True,
            sliding_window=128,
            sliding_every=2),
    experts('deepseek-v3', 64, 8, 2048, 5, 7168, 128, 128, 18432, 129280, 4096, mla=LATENT,
            shared_ffn=2048,
            dense_layers=1, mtp_layers=1),
    experts('dbrx', 16, 4, 10752, 4, 6144, 48, 8, 10752, 100352, 4096, norm='layernorm'),
    experts('llama-4-scout', 16, 1, 8192, 4, 5120, 40, 8, 16384, 202048, 8192, shared_ffn=8192,
            head_dim=128),
    {**dense('bert-large', 8, 1024, 16, 16, 4096, 30522, 512, **GPT), 'kind': 'encoder'},
    {**dense('t5-large', 6, 1024, 16, 16, 4096, 32128, 512, act='gelu', norm='rmsnorm'),
     'kind': 'encoder-decoder'},
    {**dense('switch', 4, 1024, 16, 16, 4096, 32128, 512, act='gelu'),
     'kind': 'encoder-decoder-moe', 'experts': 4, 'topk': 1},
    *({'name': name, 'kind': 'cnn'} for name in ('resnet50', 'vgg16', 'densenet121', 'inception_v3',
                                                 'efficientnet')),
]
NARROW = {'fp8': ('h100', 'h200', 'b200', 'b300', 'gb200', 'gb300', 'h800', 'h20', 'l40s',
                  'rtx-4090', 'rtx-5090', 'mi3'),
          'mxfp8': ('b200', 'b300', 'gb200', 'gb300'), 'nvfp4': ('b200', 'b300', 'gb200', 'gb300')}
FLAGS = ['lora', 'no_optimizer_step', 'first_last_stage_one_layer_less', 'dp_overlap', 'tp_overlap',
         'async_tp', 'compile', 'fused_cross_entropy', 'float8_allgather', 'moe_pad_to_capacity']


def draw_precision(random_, device):
    usual = ['bf16', 'bf16', 'bf16', 'fp16', 'fp32', 'tf32']
    narrow = [name for name, of in NARROW.items() if device.startswith(of)]
    return random_.choice(usual + 2 * narrow)


def draw_mesh(random_, model, gpus, node):
    """tp, pp, cp and dp whose product is `gpus`, and what goes with them."""
    heads = model.get('kv_heads', 1)
    mesh = {'tp': 1, 'pp': 1, 'cp': 1, 'dp': 1}
    left = gpus
    while left > 1:
        axis = random_.choice(['tp', 'pp', 'dp', 'dp', 'cp'])
        allowed = {'tp': model['kind'] != 'cnn' and mesh['tp'] * 2 <= min(node, 8)
                   and heads % (2 * mesh['tp']) == 0,
                   'pp': model['kind'] != 'cnn' and mesh['pp'] * 2 <= model['layers'], 'dp': True,
                   'cp': model['kind'].startswith('decoder') and mesh['cp'] < 4}
        if allowed[axis]:
            mesh[axis] *= 2
            left //= 2
    mesh['sp'] = mesh['tp'] > 1 and random_.random() < 0.7
    if mesh['dp'] * mesh['cp'] > 1:
        mesh['zero'] = random_.choice([0, 1, 1, 3])
    if mesh.get('zero') == 3 and mesh['dp'] > 4 and random_.random() < 0.5:
        mesh['fsdp_group'] = mesh['dp'] // 2
    if mesh['cp'] > 1:
        mesh['cp_comm'] = random_.choice(['p2p', 'a2a', 'all_gather', None])
    if model.get('experts'):
        mesh['ep'] = random_.choice([n for n in (1, 2, 4, 8, 16) if mesh['dp'] * mesh['cp'] % n == 0
                                     and model['experts'] % n == 0])
        mesh['etp'] = random_.choice([0, 1])
    return mesh


def draw_schedule(random_, model, mesh):
    if mesh['pp'] == 1:
        return 'grad-accumulation'
    name = random_.choice(['1f1b', '1f1b', 'interleaved_1f1b', 'gpipe', 'zb-1p', 'zb-2p', 'zb-v'])
    if name == 'interleaved_1f1b':
        mesh['vpp'] = 2
        return name if model['layers'] >= 2 * mesh['pp'] else '1f1b'
    return name


def draw(seed):
    random_ = random.Random(f'points {seed}')
    model = copy.deepcopy(MODELS[seed % len(MODELS)])  # each in turn
    gpu = sorted(GPUS)[(seed * 7 + seed // len(MODELS)) % len(GPUS)]
    device, node = GPUS[gpu]
    gpus = 1 if node == 1 else random_.choice([1, 2, 4, 8, 16, 32] if not gpu.startswith('MI')
                                              else [1, 8])
    mesh = draw_mesh(random_, model, gpus, node)
    schedule = draw_schedule(random_, model, mesh)
    if schedule == '1f1b':
        mesh.pop('vpp', None)
    micro = random_.choice([1, 1, 2, 4])
    times = random_.choice([1, 2, 4]) * (2 * mesh['pp'] if mesh['pp'] > 1 else 1)
    options = {flag: True for flag in FLAGS if random_.random() < 0.12}
    if random_.random() < 0.3:
        options['flash_attention'] = random_.random() < 0.6
    if random_.random() < 0.2:
        options['cuda_graphs'] = random_.choice([True, False, 'local', 'none'])
    if model.get('experts'):
        options.update({key: value for key, value in (
            ('moe_capacity_factor', 1.25), ('moe_drop_tokens', random_.random() < 0.5),
            ('moe_dispatcher', random_.choice(['alltoall', 'flex']))) if random_.random() < 0.3})
    if random_.random() < 0.1:
        options['packed_tokens'] = random_.choice([1, 100, 10000])
    return {
        'id': f'drawn/{seed}', 'model': model, 'parallel': mesh, 'schedule': schedule,
        'hardware': {'gpu': gpu, 'gpus': gpus, 'gpus_per_node': node,
                     'memory_gb': random_.choice([None, 80, 180])},
        'batch': {'global': micro * times * mesh['dp'], 'micro': micro,
                  'micro_batches': random_.choice([None, times])},
        'precision': draw_precision(random_, device),
        'recompute': random_.choice(['none', 'none', 'full', 'unknown', 'selective:core_attn',
                                     'selective:["layernorm", "moe_act"]']),
        'optimizer': random_.choice(['adam', 'adam', 'adam', 'sgd', 'momentum']),
        'framework': random_.choice(FRAMEWORKS), 'options': options,
        'measured': {'step_time_s': 1, 'peak_allocated_bytes': 1e9}, 'features': [model['kind']],
    }


# Values at the edges, some impossible in real runs.
EDGES = {
    'model/layers': [1, 3, 0],
    'model/seq': [1, 0],
    'model/vocab': [1, 0],
    'model/heads': [1, 0],
    'model/hidden': [8, 0],
    'model/ffn': [1, 0],
    'model/topk': [64, 0],
    'model/experts': [1],
    'model/head_dim': [1],
    'model/kv_heads': [0],
    'model/moe_ffn': [0],
    'hardware/memory_gb': [0.001],
    'hardware/gpus_per_node': [0, 1, 3, 1000],
    'hardware/inter': ['100 Gbit/s', '800 Gbit/s per node', 'carrier pigeons'],
    'parallel/tp': [3, 16],
    'parallel/pp': [7],
    'parallel/vpp': [3, 5],
    'parallel/dp': [3],
    'parallel/cp': [3],
    'parallel/ep': [3, 512],
    'parallel/etp': [2],
    'parallel/zero': [2, 3],
    'parallel/fsdp_group': [3, 1],
    'parallel/cp_comm': ['a2a+p2p'],
    'batch/micro': [0, 1000],
    'batch/global': [0, 7],
    'batch/micro_batches': [1, 3],
    'precision': ['int8', 'mxfp8', 'nvfp4'],
    'recompute': ['selective:x', 'block:3', 'selective:["mlp"]', 'selective:mla_up_proj',
                  'every second matmul', 'selective:every second matmul'],
    'schedule': ['pipedream', 'nf1b', 'dualpipe', 'zb-v'],
    'optimizer': ['muon'],
    'framework': ['torchtitan', 'Megatron-Bridge 26.08'],
    'model/mtp_layers': [1, 3],
    'model/dense_layers': [2, 100],
    'model/shared_ffn': [100],
    'model/sliding_window': [7],
    'model/sliding_every': [3],
    'model/mla': [{}, {'q_lora_rank': 8}],
    'model/mamba': [True],
    'model/qk_norm': [True],
    'model/tied': [True],
    'model/act': ['relu', None],
    'model/norm': ['batchnorm'],
    'model/pos': ['none'],
    'model/kind': ['vit', 'encoder', 'encoder-decoder', 'decoder-moe'],
    'options/moe_capacity_factor': [0.1, 100],
    'options/moe_pad_to_capacity': [True],
    'options/packed_tokens': [3],
    'options/grad_dtype': ['fp32', 'fp64'],
    'options/profiled_ms': [{'F': 1, 'B': 1, 'W': 1, 'comm': 0}],
    'options/offload': [True],
}


def draw_edge(seed):
    """A point with one or two values of EDGES, on as many GPUs as its mesh then has ranks."""
    random_ = random.Random(f'edge {seed}')
    point = draw(seed)
    for _ in range(random_.choice([1, 2])):
        pointer = random_.choice(sorted(EDGES))
        value = random_.choice(EDGES[pointer])
        point = alike(point, f'{pointer}={value}', {pointer: value})
    mesh = point['parallel']
    if random_.random() < 0.8:
        point['hardware']['gpus'] = mesh['tp'] * mesh['pp'] * mesh['cp'] * mesh['dp']
    point['id'] += f'/{seed}'
    return point


def alike(point, name, changes):
    made = copy.deepcopy(point)
    made['id'] += '/' + name
    for pointer, value in changes.items():
        part, key = pointer.split('/') if '/' in pointer else (None, pointer)
        (made[part] if part else made)[key] = value
    return made
