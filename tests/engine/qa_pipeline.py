"""What transformers' question-answering pipeline gave (version 4.57; later ones have none)."""

from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

MAX_ANSWER_TOKENS = 30


class QuestionAnswering:
    """Among the tokens of the context and [CLS], softmax of starts and of ends apart, the best product in
    order and of at most 30 tokens, grown to words; in one window."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModelForQuestionAnswering.from_pretrained(folder, local_files_only=True).eval()

    def answer(self, question: str, context: str) -> tuple[int, int, float]:
        """(start, end, score)"""
        encoded = self._tokenizer(question, context, return_tensors="pt")
        with torch.inference_mode():
            output = self._model(**encoded)
        allowed = np.array([of == 1 for of in encoded.sequence_ids(0)])
        allowed[0] = True
        shares = []
        for logits in (output.start_logits[0].numpy(), output.end_logits[0].numpy()):
            masked = np.where(allowed, logits.astype(np.float64), -10_000)
            share = np.exp(masked - masked.max())
            share /= share.sum()
            share[0] = 0
            shares.append(share)
        products = np.tril(np.triu(np.outer(*shares)), MAX_ANSWER_TOKENS - 1)
        start, end = np.unravel_index(products.argmax(), products.shape)
        first = encoded.word_to_chars(0, encoded.token_to_word(0, int(start)), 1)
        last = encoded.word_to_chars(0, encoded.token_to_word(0, int(end)), 1)
        return int(first.start), int(last.end), float(products.max())
