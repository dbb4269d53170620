"""Models other than the bi-encoder: checked at the start, loaded by their first use."""

from pathlib import Path

from starlette.testclient import TestClient

from app.engine.text_models import load_text_models
from app.main import create_app
from tests.api.stand_up import assert_problem, client_of, settings_in
from tests.reading_substitutes import without_reading
from tests.substitutes import WordHashEmbedder
from tests.text_substitutes import tiny_text_settings


def loaded_models(client: TestClient) -> dict[str, bool]:
    return {each["role"]: each["loaded"] for each in client.get("/v1/models").json()["models"]}


def test_a_model_is_loaded_by_its_first_use_which_says_how_long_that_took(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **tiny_text_settings(tmp_path))
    with client_of(settings, texts=load_text_models(settings)) as client:
        assert loaded_models(client) == {"embedder": True, "tagger": False, "sequence": False}
        first, second = (
            client.post("/v1/classify/token", json={"texts": ["Marie Curie"]}).json()["timings_ms"]
            for _ in range(2)
        )
        assert (list(first), list(second)) == (["load", "total"], ["total"])
        assert loaded_models(client) == {"embedder": True, "tagger": True, "sequence": False}
        assert 'bifocal_model_loaded{name="tagger",role="tagger"} 1.0' in client.get("/metrics").text
        assert 'bifocal_model_loaded{name="sentiment",role="sequence"} 0.0' in client.get("/metrics").text


def test_models_may_be_loaded_at_the_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, preload=True, **tiny_text_settings(tmp_path))
    with client_of(settings, texts=load_text_models(settings)) as client:
        while client.get("/v1/models").status_code == 503:
            pass
        assert loaded_models(client) == {"embedder": True, "tagger": True, "sequence": True}


def test_a_damaged_model_is_told_at_the_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, **tiny_text_settings(tmp_path))
    with (settings.models / "tagger" / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\x7f")
    app = create_app(settings, load=lambda _: WordHashEmbedder(), load_reading=without_reading)
    with TestClient(app, raise_server_exceptions=False) as client:
        while "being loaded" in (checks := client.get("/readyz").json()["checks"])["texts"]:
            pass
        assert "model.safetensors was altered" in checks["texts"]
        assert "was altered" in assert_problem(client.get("/v1/models"), 503, "model-unavailable")["detail"]


def test_a_model_that_cannot_be_loaded_when_it_is_needed_is_tried_again(tmp_path: Path) -> None:
    """Its files vanish after the start, and come back."""
    settings = settings_in(tmp_path, **tiny_text_settings(tmp_path))
    body = {"texts": ["good"], "model": "sentiment"}
    with client_of(settings, texts=load_text_models(settings)) as client:
        folder = settings.models / "sentiment"
        folder.rename(tmp_path / "elsewhere")
        answer = client.post("/v1/classify/sequence", json=body)
        assert_problem(answer, 503, "model-unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert client.get("/livez").status_code == 200
        (tmp_path / "elsewhere").rename(folder)
        assert client.post("/v1/classify/sequence", json=body).status_code == 200
