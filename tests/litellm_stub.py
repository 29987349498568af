"""The parts of LiteLLM's interface that our adapter uses, as recorded from version 1.106.2.

LiteLLM's pins exclude those of other packages, so that it is not in the environment of the tests:
`install` puts this in its place there. `tests/litellm_router.py` runs the adapter under LiteLLM.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

PRICE = 1e-6  # dollars a token


class BadRequestError(Exception):
    pass


class InternalServerError(Exception):
    pass


class Timeout(Exception):  # noqa: N818 - LiteLLM's name
    pass


FAILURES = {
    f"litellm.{cls.__name__}": cls for cls in (BadRequestError, InternalServerError, Timeout)
}


class CustomLogger:
    pass


class CustomRoutingStrategyBase:
    pass


class Router:
    """A router of mock answers; ``seconds`` of a deployment are what an answer took."""

    def __init__(self, model_list: list[Any], num_retries: int = 2, **_: Any) -> None:
        self.model_list = [
            {"model_info": {"id": f"{k}"}, **one} for k, one in enumerate(model_list)
        ]
        self.num_retries = num_retries
        self.cooling: set[str] = set()

    def set_custom_routing_strategy(self, strategy: Any) -> None:
        self.async_get_available_deployment = strategy.async_get_available_deployment
        self.get_available_deployment = strategy.get_available_deployment

    def get_model_ids(self, model_name: str) -> list[str]:
        return [d["model_info"]["id"] for d in self.model_list if d["model_name"] == model_name]

    async def async_get_healthy_deployments(
        self, *, model: str, request_kwargs: Any, messages: Any, input: Any,
        specific_deployment: Any,
    ) -> Any:  # fmt: skip
        if specific_deployment:
            return next(d for d in self.model_list if d["model_info"]["id"] == model)
        group = [d for d in self.model_list if d["model_name"] == model]
        return [d for d in group if d["model_info"]["id"] not in self.cooling]

    async def acompletion(self, model: str, messages: Any, **kwargs: Any) -> Any:
        last: Exception | None = None
        for _ in range(1 + self.num_retries):
            chosen = await self.async_get_available_deployment(
                model=model, messages=messages, request_kwargs=kwargs
            )
            params, info = chosen["litellm_params"], dict(chosen["model_info"])
            text, start = params["mock_response"], datetime(2026, 1, 1)
            event = {"litellm_params": {"model_info": info}, "model": params["model"]}
            times = {
                "start_time": start,
                "end_time": start + timedelta(0, params.get("seconds", 1)),
            }
            if text in FAILURES:
                last = FAILURES[text]()
                for logger in module.callbacks:
                    await logger.async_post_call_failure_deployment_hook(
                        {"model_info": info}, last, None
                    )
                    await logger.async_log_failure_event(
                        {**event, "exception": last}, None, **times
                    )
                continue
            usage = SimpleNamespace(completion_tokens=len(text.split()))
            message = SimpleNamespace(message=SimpleNamespace(content=text))
            answer = SimpleNamespace(usage=usage, choices=[message])
            event["response_cost"] = (
                PRICE * usage.completion_tokens if params.get("priced", True) else None
            )
            for logger in module.callbacks:
                await logger.async_log_success_event(event, answer, **times)
            return answer
        assert last is not None
        raise last


module: Any = ModuleType("litellm")
module.callbacks = []
module.Router, module.Timeout, module.BadRequestError = Router, Timeout, BadRequestError
module.InternalServerError = InternalServerError


def install() -> None:
    """Stand in for LiteLLM, where it is missing."""
    if "litellm" in sys.modules or find_spec("litellm") is not None:
        return
    parts = {"integrations.custom_logger": {"CustomLogger": CustomLogger},
             "router": {"CustomRoutingStrategyBase": CustomRoutingStrategyBase},
             "integrations": {}}  # fmt: skip
    sys.modules["litellm"] = module
    for name, found in parts.items():
        part = ModuleType(f"litellm.{name}")
        vars(part).update(found)
        sys.modules[part.__name__] = part
