"""Operations that PyTorch executes."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """Records every operation by its full name."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Any] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.done.append(func)
        return func(*args, **(kwargs or {}))
