"""Checks and names of the parameters that a DistributedOptimizer is given."""

from __future__ import annotations

import warnings
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import torch


def check_passes(passes: int) -> None:
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step={passes!r}; it must be an integer of at least 1")


def check_names(optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]]) -> Dict[int, str]:
    """Names by the parameter's id; ValueError as the documentation of DistributedOptimizer says."""
    if named_parameters is None:
        names = {}
        for group_number, group in enumerate(optimizer.param_groups):
            given = group.get("param_names")  # torch 2.6 and later
            for index, parameter in enumerate(group["params"]):
                names[id(parameter)] = given[index] if given else f"allreduce.noname.{group_number}.{index}"
        return names
    named = list(named_parameters)
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in named):
        raise ValueError("named_parameters must be pairs (name, parameter); give model.named_parameters()")
    seen, twice = set(), set()
    for name, _ in named:
        (twice if name in seen else seen).add(name)
    if twice:
        raise ValueError(f"named_parameters names several parameters alike: {', '.join(sorted(twice))}; give each a name of its own")
    names = {id(parameter): name for name, parameter in named}
    unnamed = [
        f"{tuple(parameter.shape)} ({index} of group {number})"
        for number, group in enumerate(optimizer.param_groups)
        for index, parameter in enumerate(group["params"])
        if id(parameter) not in names
    ]
    if named and unnamed:
        raise ValueError(
            f"named_parameters leaves out parameters of the optimizer: those of shape {', '.join(unnamed[:4])}. Name all, or none."
        )
    return names if named else check_names(optimizer, None)


def check_groups(groups: Any, num_groups: int) -> Union[int, List[List[torch.Tensor]]]:
    if num_groups != 0:
        warnings.warn("num_groups is deprecated; use groups", DeprecationWarning, stacklevel=3)
        if groups is None:
            groups = num_groups
    if groups is None:
        return 0
    if isinstance(groups, int):
        if groups < 0:
            raise ValueError(f"groups={groups}; give a number from 0 on, or lists of parameters")
        return groups
    made = [list(group) for group in groups]
    seen = set()
    for group in made:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError(f"groups must consist of torch.Tensor, not of {type(parameter).__name__}.")
            if id(parameter) in seen:
                raise ValueError("groups names a parameter twice; name each once")
            seen.add(id(parameter))
    return made


def name_parameters(
    param_groups: Sequence[Dict[str, Any]], names: Dict[int, str], groups: Union[int, List[List[torch.Tensor]]], first: int = 0
) -> List[Tuple[str, torch.Tensor, int]]:
    """(name, parameter, the user's group or -1) of each parameter from the group number `first` on."""
    made = []
    for number, group in enumerate(param_groups):
        for index, parameter in enumerate(group["params"]):
            made.append((names.get(id(parameter), f"allreduce.noname.{number}.{index}"), parameter, number))
    if isinstance(groups, int):
        count = len(made)
        group_of = {id(parameter): index * groups // count for index, (_, parameter, _) in enumerate(made)} if groups else {}
    else:
        group_of = {id(parameter): number for number, group in enumerate(groups) for parameter in group}
    return [(name, parameter, group_of.get(id(parameter), -1)) for name, parameter, number in made if number >= first]
