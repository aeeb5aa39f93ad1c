# A crawl whose first job submits a job for each page: hero exec -t python examples/children/crawl.py
# Needs may_submit = ["python"] in [type.python].
import hero

pages = int(hero.params.get("pages", 10))
page = "import hero; hero.output({'page': hero.params['page']})"
ids = []
for number in range(pages):
    # The name makes it once: a second attempt gets the same job.
    ids.append(hero.submit(page, name=f"page-{number}", params={"page": number}))
    hero.progress((number + 1) / pages, f"{number + 1} of {pages} pages")
hero.output(ids)
