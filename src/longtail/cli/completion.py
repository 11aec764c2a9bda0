"""`longtail completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash: add `eval "$(longtail completion bash)"` to ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(ctx.find_root().command, {}, "longtail", "_LONGTAIL_COMPLETE").source())
