"""The joint reranker and reader as a network of PyTorch: one pass gives relevance and answer spans.

Importing this module imports torch: only training, preparing and the fallback runtime do.
"""

import torch


class JointModel(torch.nn.Module):
    """A BERT encoder with two heads over `[CLS] question [SEP] passage [SEP]`.

    Relevance comes from [CLS] (Nogueira and Cho 2019, section 3), start and end of the answer from every
    token, and "no answer" is the span at position 0 (Devlin et al. 2019, sections 4.2 and 4.3).

    Args:
        encoder: called with ids, mask and segment ids; gives `last_hidden_state` (n, t, d).
        dimensions: d.
        dropout: on [CLS] and on the tokens, while training.
    """

    def __init__(self, encoder: torch.nn.Module, *, dimensions: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = torch.nn.Dropout(dropout)
        self.relevance_dense = torch.nn.Linear(dimensions, dimensions)
        self.relevance = torch.nn.Linear(dimensions, 1)
        self.spans = torch.nn.Linear(dimensions, 2)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Logits of relevance (n,), start (n, t) and end (n, t) for ids, mask, segments (n, t)."""
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        first = torch.tanh(self.relevance_dense(self.dropout(hidden[:, 0])))
        relevance = self.relevance(self.dropout(first)).squeeze(-1)
        start, end = self.spans(self.dropout(hidden)).unbind(-1)
        return relevance, start, end
