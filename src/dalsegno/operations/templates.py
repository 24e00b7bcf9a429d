"""The verbs of job templates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dalsegno.errors import Problem, UserError
from dalsegno.model.templates import JobTemplate
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, sorted_page
from dalsegno.operations.step_files import files_of_template
from dalsegno.operations.template_finder import DEFAULT_VERSION
from dalsegno.spec import templates as spec
from dalsegno.spec.job_templates import built_in
from dalsegno.spec.problems import Problems
from dalsegno.store import workflows

_KIND = "template"


@dataclass(frozen=True)
class PushedTemplate:
    """What became of a push."""

    template: JobTemplate
    #: What may be meant so, but is worth a look.
    warnings: tuple[Problem, ...] = ()


class Templates:
    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[JobTemplate]:
        """By type and version."""
        found = self._context.machinery.templates.all()
        return sorted_page(found, limit, cursor, "templates", lambda each: f"{each.job_type} {each.version}")

    def push(self, text: str | bytes, *, file: str = "template") -> PushedTemplate:
        """Store a job template in place of the one of the same type and version."""
        with self._context.changing("templates.push") as change:
            read = spec.read_with_marks(text, file=file)
            template, problems = read.template, Problems()
            found = files_of_template(template, read.marks, self._context.settings, problems)
            problems.refuse(file)
            for parent, version in template.inherit_from.items():
                self._context.machinery.templates.find(parent, version)
            written = spec.to_json(template)
            with self._context.store.database.writing() as connection:
                known = {row["version"]: row for row in workflows.template_rows(connection, template.job_type)}
                before = known.get(template.version)
                was = before and {"changed_by": before["changed_by"], "changed_at": f"{before['changed_at']}"}
                change.describe(_KIND, f"{template.job_type} {template.version}", was, {"type": template.step_type})
                workflows.save_template(
                    connection,
                    written,
                    template.job_type,
                    template.version,
                    by=self._context.caller.name,
                    now=self._context.clock(),
                    files=found.files,
                    contents=found.contents,
                )
            return PushedTemplate(replace(template, files=found.files), problems.warnings)

    def delete(self, job_type: str, version: str | None = None) -> None:
        """Remove a job template, or one version of it; steps made from it fail from then on."""
        with self._context.changing("templates.delete") as change, self._context.store.database.writing() as connection:
            versions = [row["version"] for row in workflows.template_rows(connection, job_type)]
            if not workflows.forget_template(connection, job_type, version):
                if job_type in built_in():
                    raise UserError(f"The job template {job_type!r} comes with dalsegno, and stays.")
                raise self._context.machinery.templates.missing(job_type, version or DEFAULT_VERSION, [])
            change.describe(_KIND, job_type, before={"versions": [version] if version else versions})
