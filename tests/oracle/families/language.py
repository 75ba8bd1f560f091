"""Transformers over tokens: our own as people write them, and the transformers library's."""
import math

import torch
import torch.nn.functional as F
import transformers as hf
from torch import nn

from .family import Family, Take, labels, normal

VOCABULARY, LENGTH, WIDTH = 41, 12, 16


class Gpt2Block(nn.Module):
    def __init__(self, flash):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop, self.flash = nn.Dropout(0.1), flash
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def attend(self, x):
        n, t, c = x.shape
        q, k, v = (h.view(n, t, 2, c // 2).transpose(1, 2) for h in self.qkv(x).split(c, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            score = score.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            y = self.drop(F.softmax(score, dim=-1)) @ v
        return self.drop(self.proj(y.transpose(1, 2).contiguous().view(n, t, c)))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.drop(self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")))


class Gpt2(nn.Module):
    def __init__(self, flash, tied):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Gpt2Block(flash) for _ in range(2))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, tokens):
        position = torch.arange(tokens.shape[1])
        x = self.wte(tokens) + self.wpe(position)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = nn.Linear(WIDTH, WIDTH // 2, bias=False), nn.Linear(WIDTH, WIDTH // 2, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 40, bias=False), nn.Linear(WIDTH, 40, bias=False)
        self.down = nn.Linear(40, WIDTH, bias=False)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x, cos, sin):
        n, t, _ = x.shape
        h = self.norm1(x)
        q = self.rotate(self.q(h).view(n, t, 4, 4).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(n, t, 2, 4).transpose(1, 2), cos, sin)
        v = self.v(h).view(n, t, 2, 4).transpose(1, 2)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, WIDTH))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(LlamaBlock() for _ in range(2))
        self.norm, self.head = RmsNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        rate = 10000.0 ** (-torch.arange(0, 4, 2, dtype=self.embed.weight.dtype) / 4)
        angle = torch.outer(torch.arange(tokens.shape[1], dtype=rate.dtype), rate)
        angle = torch.cat([angle, angle], -1)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, angle.cos(), angle.sin())
        return self.head(self.norm(x))


class Attend(nn.Module):
    """Attention of `heads` heads, which share `shared` ones of keys and values, between narrow layers."""

    def __init__(self, heads, shared, width, causal=False, drop=0.0):
        super().__init__()
        self.heads, self.shared, self.width, self.causal = heads, shared, width, causal
        self.q, self.k = nn.Linear(8, heads * width), nn.Linear(8, shared * width)
        self.v, self.out = nn.Linear(8, shared * width), nn.Linear(heads * width, 8)
        self.drop = nn.Dropout(drop)

    def forward(self, x, z, mask=None):
        n, t, _ = x.shape
        q = self.q(x).view(n, t, self.heads, self.width).transpose(1, 2)
        k, v = (h(z).view(n, -1, self.shared, self.width).transpose(1, 2) for h in (self.k, self.v))
        k, v = (h.repeat_interleave(self.heads // self.shared, 1) for h in (k, v))
        score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(self.width))
        if self.causal:
            score = score.masked_fill(torch.ones(t, t).tril() == 0, float("-inf"))
        if mask is not None:
            score = score + mask
        y = self.drop(F.softmax(score, dim=-1)) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, -1))


class Heads(nn.Module):
    """Heads as wide and rows as long as kernels for tensor cores have more than one tile of, and ends of tiles."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Attend(4, 2, 64, causal=True), Attend(1, 1, 128)
        self.third, self.fourth = Attend(1, 1, 80, drop=0.1), Attend(2, 2, 32, causal=True, drop=0.1)
        self.bias, self.last = nn.Linear(1, 70), nn.Linear(8, 5)

    def forward(self, x):
        z = x[:, :70]
        x = x + self.first(x, x)
        x = x + self.second(x, z, self.bias(x.mean(2, keepdim=True)).unsqueeze(1))
        x = x + self.third(z, x[:, :138]).repeat(1, 2, 1)[:, :x.shape[1]]
        return self.last((x + self.fourth(x, x)).mean(1))


class Encoder(nn.Module):
    """nn.TransformerEncoder over vectors, averaged."""

    def __init__(self, norm_first, activation, causal):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, 0.1, activation, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head, self.causal = nn.Linear(WIDTH, 5), causal

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.head(self.encoder(x, mask=mask, is_causal=self.causal).mean(1))


class Seq2Seq(nn.Module):
    """nn.Transformer: encoder and decoder."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.net = nn.Transformer(WIDTH, 2, 1, 1, 32, 0.1, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, source, sink):
        mask = nn.Transformer.generate_square_subsequent_mask(sink.shape[1])
        return self.head(self.net(self.embed(source), self.embed(sink), tgt_mask=mask, tgt_is_causal=True))


class HfLoss(nn.Module):
    """A causal language model that computes its own loss from its tokens."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, mask):
        return self.net(input_ids=tokens, attention_mask=mask, labels=tokens, use_cache=False).loss


class Bert(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, mask, types=None):
        return self.net(input_ids=tokens, attention_mask=mask, token_type_ids=types).logits


class Masked(nn.Module):
    """A causal language model given its mask, as batches of unequal length need it."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, mask):
        return self.net(input_ids=tokens, attention_mask=mask, use_cache=False).logits


class T5(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, decoded):
        return self.net(input_ids=tokens, decoder_input_ids=decoded, use_cache=False).logits


def hf_gpt2(attention="sdpa"):
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=WIDTH, n_layer=2, n_head=2,
                                            attn_implementation=attention))


def hf_llama(attention="sdpa"):
    return hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH, attn_implementation=attention))


def hf_bert(**kw):
    return hf.BertForSequenceClassification(hf.BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=LENGTH, num_labels=5, **kw))


def hf_t5():
    return hf.T5ForConditionalGeneration(hf.T5Config(
        vocab_size=VOCABULARY, d_model=WIDTH, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0))


def hf_vit():
    return hf.ViTForImageClassification(hf.ViTConfig(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
                                                     intermediate_size=32, image_size=16, patch_size=4, num_labels=5))


def mask():
    keep = torch.ones(2, LENGTH, dtype=torch.int64)
    keep[1, LENGTH - 4:] = 0
    return keep


class AttentionTwice(nn.Module):
    """Fresh attentions, of which one is called twice; zeros and ones of each are the others' too."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(2))
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x):
        for attention, norm in ((self.a, self.norm_a), (self.b, self.norm_b), (self.a, self.norm_a)):
            h = norm(x)
            x = x + attention(h, h, h, need_weights=False)[0]
        return self.head(x.mean(1))


class Padded(nn.Module):
    """Embeddings with a row of padding; one is the last layer's weight as well, which gives that row a gradient."""

    def __init__(self, tied):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH, padding_idx=2), nn.Embedding(9, WIDTH, padding_idx=-1)
        self.plain, self.mix = nn.Embedding(9, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, tokens, places):
        x = self.token(tokens) + self.place(places) + self.plain(places)
        return self.head(torch.tanh(self.mix(x)))


def padded(tied, **kw):
    def inputs():
        tokens, places = TOKENS(), torch.arange(LENGTH).expand(2, -1) % 9
        tokens[:, -4:] = 2
        return tokens, places.clone()

    return Family(lambda: Padded(tied), inputs, TOKENS, **kw)


NO_DIFF = ("old",)  # the older exporter does not know torch.diff, which is used where no mask is given
TOKENS = labels(VOCABULARY, 2, LENGTH)


def tokens(build, **kw):
    return Family(build, TOKENS, TOKENS, **kw)


TABLE = {
    "gpt2": tokens(lambda: Gpt2(False, True)),
    "gpt2_flash": tokens(lambda: Gpt2(True, True)),
    "gpt2_untied": tokens(lambda: Gpt2(False, False)),
    "llama": tokens(Llama),
    "heads": Family(Heads, normal(1, 140, 8), labels(5, 1)),
    "transformer_encoder": Family(lambda: Encoder(False, "relu", False), normal(3, 7, WIDTH), labels(5, 3)),
    "transformer_encoder_fresh": Family(lambda: Encoder(False, "relu", False), normal(3, 7, WIDTH), labels(5, 3),
                                        fresh=True, dropped=("*.out_proj.bias",)),
    "transformer_encoder_causal": Family(lambda: Encoder(True, "gelu", True), normal(3, 7, WIDTH), labels(5, 3)),
    "transformer": Family(Seq2Seq, lambda: (TOKENS(), TOKENS()), TOKENS),
    "attention_twice": Family(AttentionTwice, normal(3, 7, WIDTH), labels(5, 3), options="--restore-biases", fresh=True,
                              calls=True),
    "padding": padded(False, calls=True),
    "padding_tied": padded(True, calls=True),
    "padding_asked": padded(True, options="--padding-idx token.weight=2 --padding-idx place.weight=-1"),
    "hf_gpt2": tokens(lambda: Take(hf_gpt2(), "logits", use_cache=False), cannot=NO_DIFF),
    "hf_gpt2_eager": tokens(lambda: Take(hf_gpt2("eager"), "logits", use_cache=False), cannot=NO_DIFF),
    "hf_gpt2_mask": Family(lambda: Masked(hf_gpt2()), lambda: (TOKENS(), mask()), TOKENS),
    "hf_gpt2_loss": Family(lambda: HfLoss(hf_gpt2()), lambda: (TOKENS(), mask()), loss="output:loss"),
    "hf_llama": tokens(lambda: Take(hf_llama(), "logits", use_cache=False), cannot=NO_DIFF),
    "hf_llama_eager": tokens(lambda: Take(hf_llama("eager"), "logits", use_cache=False), cannot=NO_DIFF),
    "hf_llama_mask": Family(lambda: Masked(hf_llama()), lambda: (TOKENS(), mask()), TOKENS),
    "hf_bert": Family(lambda: Bert(hf_bert()), lambda: (TOKENS(), mask()), labels(5, 2)),
    "hf_bert_eager": Family(lambda: Bert(hf_bert(attn_implementation="eager")), lambda: (TOKENS(), mask(), labels(2, 2, LENGTH)()),
        labels(5, 2)),
    "hf_t5": Family(lambda: T5(hf_t5()), lambda: (TOKENS(), TOKENS()), TOKENS),
    "hf_vit": Family(lambda: Take(hf_vit(), "logits"), normal(2, 3, 16, 16), labels(5, 2)),
}
