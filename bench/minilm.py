"""all-MiniLM-L6-v2 from its weights, with numpy alone: what a typical vector memory embeds with."""
import json, os, struct

# Threads that wait for each other take more from whoever else is there than they give here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import tokenizers

LONGEST = 256
HEADS = 12
BATCH = 32


def encoder(directory):
    """A function from texts to vectors of length 1."""
    weights = read(os.path.join(directory, "model.safetensors"))
    words = tokenizers.Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    words.enable_truncation(LONGEST)
    words.no_padding()

    def encode(texts):
        tokens = [encoded.ids for encoded in words.encode_batch(list(texts))]
        vectors = [None] * len(tokens)
        # Texts of one length together: none is padded by much.
        by_length = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
        for begin in range(0, len(by_length), BATCH):
            batch = by_length[begin:begin + BATCH]
            for number, vector in zip(batch, forward(weights, [tokens[number] for number in batch])):
                vectors[number] = vector
        return np.stack(vectors)

    return encode


def read(path):
    """The tensors of a file by name: a length, a table in JSON, the numbers."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        table, data = json.loads(file.read(length)), file.read()
    kinds = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    tensors = {}
    for name, tensor in table.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            kind = kinds[tensor["dtype"]]
            tensors[name] = np.frombuffer(data[begin:end], kind).reshape(tensor["shape"])
            if kind == np.float16:
                tensors[name] = tensors[name].astype(np.float32)
    return tensors


def forward(weights, tokens):
    width = max(map(len, tokens))
    ids, mask = np.zeros((len(tokens), width), int), np.zeros((len(tokens), width), np.float32)
    for row, words in enumerate(tokens):
        ids[row, :len(words)], mask[row, :len(words)] = words, 1
    rows = lambda value: value.reshape(-1, value.shape[-1])
    linear = lambda value, name: rows(value) @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    embedding = lambda name: weights[f"embeddings.{name}_embeddings.weight"]
    state = embedding("word")[ids] + embedding("position")[:width] + embedding("token_type")[0]
    state = normal(weights, rows(state), "embeddings.LayerNorm")
    unseen = (1 - mask[:, None, None, :]) * np.float32(-1e9)
    split = lambda value: value.reshape(len(tokens), width, HEADS, -1).transpose(0, 2, 1, 3)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        query, key, value = (split(linear(state, f"{layer}.attention.self.{part}")) for part in ("query", "key", "value"))
        attention = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(query.shape[-1])) + unseen
        attention = np.exp(attention - attention.max(-1, keepdims=True))
        seen = (attention / attention.sum(-1, keepdims=True)) @ value
        seen = seen.transpose(0, 2, 1, 3).reshape(state.shape)
        state = normal(weights, state + linear(seen, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        inner = gelu(linear(state, f"{layer}.intermediate.dense"))
        state = normal(weights, state + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    state = state.reshape(len(tokens), width, -1)
    mean = (state * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def normal(weights, value, name):
    value = value - value.mean(-1, keepdims=True)
    value = value / np.sqrt((value * value).mean(-1, keepdims=True) + np.float32(1e-12))
    return value * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def gelu(value):
    """With the error function by Abramowitz and Stegun 7.1.26, which is off by 1.5e-7 at most."""
    size = np.abs(value) * np.float32(np.sqrt(0.5))
    part = 1 / (1 + np.float32(0.3275911) * size)
    series = np.zeros_like(part)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(factor)
        series *= part
    error = np.copysign(1 - series * np.exp(-size * size), value)
    return value * (1 + error) / 2
