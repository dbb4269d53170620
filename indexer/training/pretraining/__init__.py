"""Pretraining: masked words, and whether two segments belong together.

`corpus` reads documents as sentences, `segments` makes inputs of them, `masking` hides words, `networks`
knows the architectures, `running` trains.
"""
