"""Hides 15 % of the tokens: of those 80 % become [MASK], 10 % a random token, 10 % stay.

Source: Devlin et al. 2019, section 3.1; whole words as in the authors' later models: all pieces of a word.
"""

from typing import Any

import torch
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase

from indexer.training.batching import rounded

SHARE = 0.15
WORD_STARTS = ("▁", "Ġ")
"""Marks of a token that begins a word, in SentencePiece and in byte-level BPE."""
PAIR_LABELS = "pair_labels"


class MaskingCollator(DataCollatorForLanguageModeling):
    """Pads to a rounded length and masks anew each time.

    Args:
        whole_words: choose words, and mask all pieces of one.
        seed: None draws from torch's own generator, which checkpoints keep.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        whole_words: bool,
        max_tokens: int,
        seed: int | None = None,
    ) -> None:
        super().__init__(tokenizer, mlm_probability=1.0, seed=seed)
        self._continues = continuing_tokens(tokenizer)
        self._whole_words = whole_words
        self._max_tokens = max_tokens

    def torch_call(self, examples: list[Any]) -> dict[str, Any]:
        rows: list[dict[str, Any]] = examples
        if self.seed is not None and self.generator is None:
            self.generator = torch.Generator().manual_seed(self.seed)
        length = min(rounded(max(len(row["input_ids"]) for row in rows)), self._max_tokens)
        padded = [{k: v for k, v in row.items() if k != PAIR_LABELS} for row in rows]
        batch = self.tokenizer.pad(padded, padding="max_length", max_length=length, return_tensors="pt")
        special = batch.pop("special_tokens_mask").bool()  # (n, t), padding included
        chosen = self.choose(batch["input_ids"], special)
        batch["input_ids"], batch["labels"] = self.torch_mask_tokens(
            batch["input_ids"], special_tokens_mask=~chosen
        )
        batch[PAIR_LABELS] = torch.tensor([row[PAIR_LABELS] for row in rows])
        return dict(batch)

    def choose(self, ids: torch.Tensor, special: torch.Tensor) -> torch.Tensor:
        """(n, t), True for tokens to predict: each, or each word, with a chance of 15 %."""
        drawn = torch.rand(ids.shape, generator=self.generator) < SHARE  # (n, t)
        if not self._whole_words:
            return drawn & ~special
        begins = ~self._continues[ids] | special
        word = begins.long().cumsum(dim=1) - 1  # (n, t), the number of its word
        of_word = _spread(drawn & begins, word)
        return of_word & ~special


def _spread(first: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
    """What the first piece of a word got, for all of its pieces."""
    chosen = torch.zeros(first.shape, dtype=torch.long)
    chosen.scatter_add_(1, word.clamp(min=0), first.long())  # by number of the word
    return chosen.gather(1, word.clamp(min=0)).bool()


def continuing_tokens(tokenizer: PreTrainedTokenizerBase) -> torch.Tensor:
    """(vocabulary,), True for tokens that go on with a word."""
    vocabulary = tokenizer.get_vocab()
    is_wordpiece = any(token.startswith("##") for token in vocabulary)
    continues = torch.zeros(max(vocabulary.values()) + 1, dtype=torch.bool)
    for token, i in vocabulary.items():
        goes_on = token.startswith("##") if is_wordpiece else not token.startswith(WORD_STARTS)
        continues[i] = goes_on and token not in tokenizer.all_special_tokens
    return continues
