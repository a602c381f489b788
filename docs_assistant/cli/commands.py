"""The commands, each imported when it is used (all take 1 s and 33 MB), and click's errors in our words."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from app.core.errors import did_you_mean
from app.core.hooks import registered_by_name


class Group(click.Group):
    """A group with commands that are imported when they are used.

    `lazy` has the place of each, as module:object, and what it does.
    """

    def __init__(self, name: str, lazy: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(name, no_args_is_help=False, subcommand_metavar="COMMAND ...", **more)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, ours first."""
        return list(dict.fromkeys([*self.lazy, *super().list_commands(ctx)]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command; None if there is none with this name."""
        if cmd_name in self.lazy and cmd_name not in self.commands:
            place, summary = self.lazy[cmd_name]
            module, _, name = place.partition(":")
            command: click.Command = getattr(import_module(module), name)
            command.help = command.help or f"{summary[0].upper()}{summary[1:]}."
            self.add_command(command, cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command. Errors that name none, such as an option without its value, are those of this one."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            if name and not error.ctx and (command := self.get_command(ctx, name)):
                error.ctx = click.Context(command, parent=ctx, info_name=name)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        rows = [(name, summary) for name, (_, summary) in self.lazy.items()]
        others = ((name, self.commands[name]) for name in self.list_commands(ctx) if name not in self.lazy)
        rows += [(name, command.get_short_help_str(formatter.width)) for name, command in others if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


root = Group(
    "docs-assistant",
    {
        "init": ("docs_assistant.cli.init:init", "write docs-assistant.toml, the commented file of settings"),
        "run": ("docs_assistant.cli.run:run", "start the service, index a site, and print the next steps"),
        "serve": ("docs_assistant.cli.serve:serve", "serve the OpenAI chat API and the documentation site"),
        "ask": ("docs_assistant.cli.ask:ask", "ask a question and read the answer as it is written"),
        "ingest": ("docs_assistant.cli.ingest:ingest", "index documentation sites"),
        "pages": ("docs_assistant.cli.index:pages", "show the indexed pages"),
        "generations": ("docs_assistant.cli.index:generations", "list the kept generations of the index"),
        "rollback": ("docs_assistant.cli.index:rollback", "make the previous generation of the index live again"),
        "assistants": ("docs_assistant.cli.check:assistants", "show the steps of each assistant"),
        "check": ("docs_assistant.cli.check:check", "say whether everything works, and what is configured and indexed"),
        "eval": (
            "docs_assistant.cli.commands:evaluation",
            "measure retrieval over a question set, compare two results",
        ),
        "prompts": (
            "docs_assistant.cli.commands:prompts",
            "write the shipped prompts as a start for your own, see what differs",
        ),
        "key": ("docs_assistant.cli.commands:key", "make, list and revoke the keys of clients"),
    },
    help="Answers questions about a documentation site from its own pages, with links.",
    epilog="Settings are environment variables, or lines of .env or docs-assistant.toml. docs-assistant init writes"
    " the file, docs-assistant check tries what it configures.",
    params=[click.Option(["--debug"], is_flag=True, help="show the traceback of an error")],
)
click.version_option(package_name="docs-assistant", message="docs-assistant %(version)s", help="print the version")(
    root
)

evaluation = Group(
    "eval",
    {
        name: (f"eval.commands.{place}", summary)
        for name, place, summary in (
            ("docs", "measuring:docs", "index this product's own documentation and measure retrieval over it"),
            ("retrieval", "measuring:retrieval", "measure on a question set whether the right pages are found"),
            ("conversations", "measuring:conversations", "measure retrieval of follow-up questions"),
            ("refusals", "measuring:refusals", "measure how many unanswerable and answerable questions are refused"),
            ("run", "answers:run", "let contestants answer a question set and measure the answers"),
            ("grid", "grid:grid", "compare models, prompts, weights, chunks, embedders and steps in one run"),
            ("compare", "measuring:compare", "compare two saved results question by question"),
            ("check", "questions:check", "find mistakes in a question set"),
            ("gate", "measuring:gate", "exit with 1 if retrieval or answers are worse than a baseline"),
            ("faults", "measuring:faults", "plant faults into good answers and measure which of them are marked"),
            (
                "clusters",
                "labelling:clusters",
                "measure search by clusters beside naive search, and draw the embeddings",
            ),
            ("label", "labelling:label", "label which chunks are relevant to questions, by models or people"),
            ("agreement", "labelling:agreement_", "compare the labels of models and people"),
            (
                "examples",
                "fitting:examples_",
                "measure by which numbers quotations are found sure, and which are right",
            ),
            ("fit", "fitting:fit_", "fit the numbers that decide, and judge each set by those of the others"),
            ("verdicts", "verdicts:verdicts", "ask questions with a verdict of an editor again, compare the answers"),
            ("generate", "questions:generate", "generate a question set from the indexed pages"),
            ("from-log", "questions:from_log", "make a question set of the questions that readers asked"),
        )
    },
)
prompts = Group(
    "prompts",
    {
        "export": ("docs_assistant.cli.own:export", "write shipped prompts into a directory"),
        "diff": ("docs_assistant.cli.own:diff", "show what differs from the shipped prompts"),
    },
)
key = Group(
    "key",
    {
        "new": ("docs_assistant.cli.key:new", "make a key and print it, once"),
        "list": ("docs_assistant.cli.key:list_keys", "list the keys of the file, without secrets"),
        "revoke": ("docs_assistant.cli.key:revoke", "remove a key from the file"),
    },
)


def with_plugins(argv: Sequence[str]) -> Group:
    """All commands; those of plugins only if none of ours is called. Raises `SettingsError` for a plugin that can't be loaded."""
    if not argv or argv[0] not in root.lazy:
        root.lazy = {**root.lazy, **registered_by_name("register_commands")}
    return root


def explained(error: click.UsageError) -> str:
    """One line that says what is wrong, with the nearest command or option, and one that says where help is."""
    context = error.ctx or click.Context(root, info_name=root.name)
    return f"{context.command_path}: {_problem(error, context)}\nHelp: {context.command_path} --help\n"


def _problem(error: click.UsageError, context: click.Context) -> str:
    command = context.command
    there = command.list_commands(context) if isinstance(command, click.Group) else []
    listed = f"The commands are {', '.join(there)}."
    match error:
        case click.NoSuchOption():
            return _unknown_option(error.option_name, context, there)
        case click.NoSuchCommand(command_name=name):
            return f"there is no command {name!r}.{did_you_mean(name, there) or f' {listed}'}"
        case click.BadParameter():
            return error.format_message()
        case _ if there and error.ctx:
            return f"a command is missing. {listed}"
    return error.format_message()


def _unknown_option(option: str, context: click.Context, commands: Sequence[str]) -> str:
    if context.parent and option in _options(root):
        return f"write {option} before the command: {root.name} {option} …"
    group = context.command
    if isinstance(group, click.Group):
        all_ = ((name, group.get_command(context, name)) for name in commands)
        if owners := [name for name, command in all_ if command and option in _options(command)]:
            return f"{option} is an option of {', '.join(owners)}: write it after the command."
    return f"there is no option {option}.{did_you_mean(option, _options(group))}"


def _options(command: click.Command) -> list[str]:
    return [name for param in command.params if isinstance(param, click.Option) for name in param.opts]
