"""What each kind of model is calibrated on: texts or pairs of question and passage, as it reads them."""

from collections.abc import Sequence

import numpy as np

from app.engine.capitals import capital_segments
from app.engine.head_files import HeadFiles
from app.engine.inputs import encoder_inputs
from app.engine.model_files import BiEncoderFiles
from app.engine.models import load_tokenizer
from app.engine.pairs import PairEncoder, TitledText
from app.engine.roles import READS_PAIRS, Role
from app.engine.runner import TokenSequence
from app.engine.tokenizer import Tokenizer
from app.settings import Settings
from indexer.calibration import calibration_pairs, calibration_texts
from indexer.quantisation_request import QuantisationRequest

HELD_OUT_EVERY = 10
"""Every tenth input is kept out of calibration and compares the result with the original."""


def bi_encoder_request(files: BiEncoderFiles) -> QuantisationRequest:
    inputs = encoder_inputs(
        calibration_texts(),
        None,
        tokenizer=load_tokenizer(files),
        prompt="",
        max_tokens=files.max_tokens,
        truncate=True,
    )
    sequences = [[sequence.tolist()] for sequence in inputs.sequences]
    return QuantisationRequest(
        head="",
        models="",
        transformer=str(files.transformer),
        pooling=files.pooling,
        full_precision=(),
        precision="int8",
        sequences=[s for i, s in enumerate(sequences) if i % HELD_OUT_EVERY],
        held_out=sequences[::HELD_OUT_EVERY],
        network="",
    )


def head_request(files: HeadFiles, role: Role, settings: Settings) -> QuantisationRequest:
    inputs = _pairs(files) if role in READS_PAIRS else _texts(files)
    sequences = [_as_lists(each, has_segments=files.has_segments) for each in inputs]
    return QuantisationRequest(
        head=str(files.folder),
        models=str(settings.models),
        transformer="",
        pooling="mean",
        full_precision=files.full_precision,
        precision="int8",
        sequences=[s for i, s in enumerate(sequences) if i % HELD_OUT_EVERY],
        held_out=sequences[::HELD_OUT_EVERY],
        network="",
    )


def _pairs(files: HeadFiles) -> Sequence[TokenSequence]:
    """The first window of each pair."""
    encoder = PairEncoder(load_tokenizer(files), max_tokens=files.max_tokens)
    return [
        encoder.inputs(encoder.question(pair.question), TitledText(pair.text, pair.title)).inputs[0].sequence
        for pair in calibration_pairs()
    ]


def _texts(files: HeadFiles) -> Sequence[TokenSequence]:
    tokenizer = load_tokenizer(files)
    if files.reads_capitals:
        return [_with_capitals(text, tokenizer, files.max_tokens) for text in calibration_texts()]
    inputs = encoder_inputs(
        calibration_texts(),
        None,
        tokenizer=tokenizer,
        prompt="",
        max_tokens=files.max_tokens,
        truncate=True,
    )
    return [TokenSequence(sequence) for sequence in inputs.sequences]


def _with_capitals(text: str, tokenizer: Tokenizer, max_tokens: int) -> TokenSequence:
    pieces = tokenizer.pieces(text)
    kept = np.append(np.arange(min(len(pieces), max_tokens) - 1), len(pieces) - 1)
    return TokenSequence(pieces.ids[kept], capital_segments(text, pieces.starts, pieces.ends)[kept])


def _as_lists(sequence: TokenSequence, *, has_segments: bool) -> list[list[int]]:
    ids: list[int] = sequence.ids.tolist()
    if not has_segments:
        return [ids]
    return [ids, [0] * len(ids) if sequence.segments is None else sequence.segments.tolist()]
