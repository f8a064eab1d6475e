"""The page of a job in Chromium: watched, clicked and read by keyboard, at two widths.

Where Chromium, its driver or Selenium is not installed, the tests are skipped by name. With
MUSTER_SCREENSHOTS=FOLDER they leave pictures there.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
from pages import acting_job, end_job, keep_run, kept_page, line_of_rank, run_mesh, shown_job
from tls import Tree

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support import expected_conditions  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="chromium and chromedriver are not installed",
)
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
PATIENCE = 120


@pytest.fixture
def open_page(tmp_path, request):
    drivers = []

    def open_page(port, size="desktop", scheme="light", token=None, protocol="http"):
        options = Options()
        options.binary_location = shutil.which("chromium")
        for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.accept_insecure_certs = protocol == "https"  # as who trusts the job's authority
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        drivers.append(driver)
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get(f"{protocol}://127.0.0.1:{port}/" + (f"#token={token}" if token else ""))
        return driver

    yield open_page
    for driver in drivers:
        driver.quit()


def wait_until(driver, holds):
    return WebDriverWait(driver, PATIENCE, poll_frequency=0.1).until(holds)


def text_of(driver, name):
    return driver.find_element(By.ID, name).text


def is_known(driver, name):
    """Whether a number of the summary is more than a dash."""
    return any(digit.isdigit() for digit in text_of(driver, name))


def rows(driver):
    lines = "[...document.querySelectorAll('#ranks tbody tr')]"
    return driver.execute_script(f"return {lines}.map(line => [...line.cells].map(cell => cell.textContent))")


def shoot(driver, name):
    if folder := os.environ.get("MUSTER_SCREENSHOTS"):
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))


def check_accessibility(driver):
    """axe-core finds nothing that WCAG 2.1 AA forbids."""
    axe = pytest.importorskip("axe_core_python", reason="axe_core_python is not installed")
    driver.execute_script((Path(axe.__file__).parent / "axe.min.js").read_text())
    found = driver.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then(done);"
    )
    told = [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
    assert not told, "\n".join(told)


def check_console(driver, allowed=()):
    """No error, and no question without an answer but those to a job that has just ended."""
    told = [each["message"] for each in driver.get_log("browser") if each["level"] == "SEVERE"]
    unanswered = ("net::ERR_CONNECTION_REFUSED", "net::ERR_SOCKET_NOT_CONNECTED")  # the second one over TLS
    allowed = (*allowed, *(f"Failed to load resource: {each}" for each in unanswered))
    assert not [text for text in told if not any(each in text for each in allowed)], told


def answer_of(driver, begin):
    """What the page says of an action, once it begins so."""
    wait_until(driver, lambda _: text_of(driver, "act-answer").startswith(begin))
    return text_of(driver, "act-answer")


def click(driver, name, accept=None):
    button = wait_until(driver, lambda _: driver.find_element(By.ID, name))
    wait_until(driver, lambda _: button.is_displayed())
    button.send_keys(Keys.ENTER)
    if accept is not None:
        question = wait_until(driver, expected_conditions.alert_is_present())
        question.accept() if accept else question.dismiss()


def test_a_job_with_a_death_and_a_recovery_is_watched_to_its_end(tmp_path, open_page):
    with shown_job(tmp_path, "--max-restarts", "2") as (process, port):
        driver = open_page(port)
        wait_until(driver, lambda _: text_of(driver, "state") == "running")
        wait_until(driver, lambda _: [row[0] for row in rows(driver)] == ["worker 0", "worker 1"])
        wait_until(driver, lambda _: is_known(driver, "samples") and is_known(driver, "loss"))
        assert text_of(driver, "workers") == "2 of 2"
        before = rows(driver)[1][1]
        shoot(driver, "dashboard-running")
        check_accessibility(driver)
        (tmp_path / "die").touch()
        wait_until(driver, lambda _: "is gone" in text_of(driver, "events"))
        wait_until(driver, lambda _: "the job goes on in epoch 2" in text_of(driver, "events"))
        wait_until(driver, lambda _: text_of(driver, "state") == "running")
        wait_until(driver, lambda _: len(rows(driver)) == 2 and rows(driver)[1][1] != before)
        assert driver.execute_script("return document.querySelectorAll('#line line').length") > 3
        end_job(tmp_path)
        wait_until(driver, lambda _: text_of(driver, "state") == "ended well")
        shoot(driver, "dashboard-ended")
        check_accessibility(driver)
        check_console(driver)
        assert process.wait() == 0


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "dark"), ("phone", "light"), ("phone", "dark")])
def test_the_page_fits_and_can_be_read(tmp_path, open_page, size, scheme):
    with shown_job(tmp_path) as (process, port):
        driver = open_page(port, size, scheme)
        wait_until(driver, lambda _: is_known(driver, "loss") and len(rows(driver)) == 2)
        wait_until(driver, lambda _: "first step" in text_of(driver, "log"))
        width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page is wider than the screen"
        shoot(driver, f"dashboard-{size}-{scheme}")
        assert driver.execute_script("return document.querySelector('h1').getBoundingClientRect().top") >= 8
        check_accessibility(driver)
        check_console(driver)
        end_job(tmp_path)
        assert process.wait() == 0


def test_the_page_is_used_by_keyboard(tmp_path, open_page):
    with shown_job(tmp_path) as (process, port):
        driver = open_page(port)
        wait_until(driver, lambda _: is_known(driver, "loss") and len(rows(driver)) == 2)
        reached = []
        for _ in range(60):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            script = "const e = document.activeElement; return e.id || e.textContent.trim() || e.tagName"
            reached.append(driver.execute_script(script))
        wanted = {"theme", "over", "smoothing", "filter", "Rank", "worker 0", "kinds", "log-find", "log"}
        assert wanted <= set(reached), reached
        # A curve is zoomed, moved and shown whole again.
        canvas = driver.find_element(By.CSS_SELECTOR, "#curves canvas")
        whole = driver.find_element(By.ID, "whole")
        canvas.send_keys("+")
        wait_until(driver, lambda _: whole.is_enabled())
        canvas.send_keys(Keys.ESCAPE)
        wait_until(driver, lambda _: not whole.is_enabled())
        # The table is turned around, and filtered.
        head = driver.find_element(By.CSS_SELECTOR, "#ranks th button")
        head.send_keys(Keys.ENTER)
        wait_until(driver, lambda _: [row[0] for row in rows(driver)] == ["worker 1", "worker 0"])
        driver.find_element(By.ID, "filter").send_keys("worker 0")
        wait_until(driver, lambda _: [row[0] for row in rows(driver)] == ["worker 0"])
        # A rank's name leads to its log, which is searched.
        driver.find_element(By.CSS_SELECTOR, "#ranks tbody button").send_keys(Keys.ENTER)
        wait_until(driver, lambda _: "first step" in text_of(driver, "log"))
        driver.find_element(By.ID, "log-find").send_keys("FIRST")
        mark = "return document.querySelector('#log mark')?.textContent"
        wait_until(driver, lambda _: driver.execute_script(mark) == "first")
        # The theme stays chosen.
        theme = driver.find_element(By.ID, "theme")
        theme.send_keys(Keys.ENTER)
        theme.send_keys(Keys.ENTER)
        assert theme.text == "Theme: dark"
        driver.refresh()
        assert text_of(driver, "theme") == "Theme: dark"
        # The heat map is walked through.
        choose = "view.value = 'map'; view.dispatchEvent(new Event('input'))"
        driver.execute_script(f"const view = document.getElementById('view'); {choose}")
        cell = wait_until(driver, lambda _: driver.find_elements(By.CSS_SELECTOR, "#map button"))[0]
        cell.send_keys(Keys.ARROW_RIGHT)
        wait_until(driver, lambda _: text_of(driver, "map-detail").startswith("worker 1 at"))
        check_console(driver)
        end_job(tmp_path)
        assert process.wait() == 0


def test_a_slow_rank_is_seen(tmp_path, open_page):
    with shown_job(tmp_path) as (process, port):
        driver = open_page(port)
        wait_until(driver, lambda _: is_known(driver, "loss"))
        (tmp_path / "slow").touch()
        wait_until(driver, lambda _: "rank 1 holds up the others" in text_of(driver, "trouble"))
        assert driver.find_elements(By.CSS_SELECTOR, "#ranks tr.slow")
        shoot(driver, "dashboard-slow")
        check_accessibility(driver)
        end_job(tmp_path)
        assert process.wait() == 0


def test_save_restart_and_stop_are_clicked(tmp_path, open_page):
    with acting_job(tmp_path, "--max-restarts", "2") as (process, port, token):
        driver = open_page(port, token=token)
        wait_until(driver, lambda _: is_known(driver, "loss") and len(rows(driver)) == 2)
        assert token not in driver.current_url, "an address may be copied"
        click(driver, "act-save")
        step = answer_of(driver, "done: saving behind step ").split()[4]
        assert list((tmp_path / "logs/saved/rank_1").glob("asked-*.ckpt")), step
        assert driver.execute_script("return document.activeElement.id") == "act-save"
        shoot(driver, "dashboard-asked")
        check_accessibility(driver)
        # A number that is no rank is not sent, an action that is not confirmed neither.
        rank = driver.find_element(By.ID, "act-rank")
        for wrong in ["", "2", "-1"]:
            rank.clear()
            rank.send_keys(wrong)
            click(driver, "act-restart")
            assert driver.execute_script("return document.activeElement.id") == "act-rank"
        rank.clear()
        rank.send_keys("1")
        click(driver, "act-restart", accept=False)
        assert text_of(driver, "act-answer").startswith("done: saving")
        pid = rows(driver)[1][1]
        click(driver, "act-restart", accept=True)
        answer_of(driver, "done: worker 1 is back as process")
        wait_until(driver, lambda _: text_of(driver, "state") == "running" and rows(driver)[1][1] != pid)
        click(driver, "act-stop", accept=True)
        answer_of(driver, "done: the training stops behind step")
        wait_until(driver, lambda _: text_of(driver, "state") == "ended well")
        assert not driver.find_element(By.ID, "actions").is_displayed()
        check_accessibility(driver)
        check_console(driver)
        assert process.wait() == 0


def test_actions_without_the_right_token_are_refused(tmp_path, open_page):
    with acting_job(tmp_path) as (process, port, _):
        driver = open_page(port)
        answer_of(driver, "The link that `muster run` printed")
        assert not driver.find_element(By.ID, "actions").is_displayed()
        check_accessibility(driver)
        check_console(driver)
        other = open_page(port, "phone", "dark", token="0" * 32)
        click(other, "act-save")
        answer_of(other, "refused: this is not the token of this job")
        assert not other.find_element(By.ID, "act-restart").is_displayed()  # without --max-restarts
        # What a log holds is text.
        wait_until(other, lambda _: "<b id=markup>not bold</b>" in text_of(other, "log"))
        assert not other.find_elements(By.ID, "markup")
        shoot(other, "dashboard-refused")
        check_accessibility(other)
        check_console(other, ["403 (Forbidden)"])
        assert process._popen.poll() is None


def drawn_colours(driver, which):
    """Colours of a chart's pixels, as "r,g,b"; those of thin lines and their edges too."""
    script = (
        "const canvas = [...document.querySelectorAll('#curves figure')]"
        ".find(figure => figure.textContent.startsWith(arguments[0])).querySelector('canvas');"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "const found = new Set();"
        "for (let i = 0; i < data.length; i += 4)"
        "  if (data[i + 3] > 250) found.add(data.slice(i, i + 3).join());"
        "return [...found];"
    )
    return set(driver.execute_script(script, which))


def chart_text(driver, which):
    script = (
        "return [...document.querySelectorAll('#curves figure')]"
        ".find(figure => figure.textContent.startsWith(arguments[0]))"
        "?.querySelector('canvas').getAttribute('aria-label')"
    )
    return driver.execute_script(script, which)


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_runs_of_the_folder_are_compared(tmp_path, open_page, size, scheme):
    keep_run(tmp_path / "this", [3.0, 2.0, 1.5, 1.2])
    keep_run(tmp_path / "better", [3.0, 1.0, 0.5, 0.3, 0.2], began=1.6e9, metrics={"mae": 0.5})
    keep_run(tmp_path / "failed", [5.0, 9.0], began=1.5e9, exit_code=1)
    for i in range(6):
        keep_run(tmp_path / f"more{i}", [4.0, 3.0 + i], began=1.4e9 - i)
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port, size, scheme)
        wait_until(driver, lambda _: text_of(driver, "state") == "ended well")
        red = "179,38,30" if scheme == "light" else "255,138,128"
        assert chart_text(driver, "Evaluation: mae") is None
        driver.find_element(By.CSS_SELECTOR, "#compare summary").send_keys(Keys.ENTER)
        boxes = wait_until(driver, lambda _: driver.find_elements(By.CSS_SELECTOR, "#runs input"))
        texts = [each.text for each in driver.find_elements(By.CSS_SELECTOR, "#runs label")]
        assert [text.split()[0] for text in texts[:2]] == ["better", "failed"] and len(texts) == 8
        assert "step 40, loss 0.2" in texts[0] and "failed with exit code 1" in texts[1]
        assert red not in drawn_colours(driver, "Loss")
        boxes[0].send_keys(Keys.SPACE)
        wait_until(driver, lambda _: red in drawn_colours(driver, "Loss"))
        assert "better: 0.2 at 4.0 s" in chart_text(driver, "Loss")
        assert "nothing yet; better: 0.5" in chart_text(driver, "Evaluation: mae")
        assert text_of(driver, "compared").split() == ["this", "run", "better"]
        # Over steps, each run has its own.
        over = driver.find_element(By.ID, "over")
        over.send_keys("steps")
        wait_until(driver, lambda _: "better: 0.2 at step 40" in chart_text(driver, "Loss"))
        shoot(driver, f"dashboard-compared-{size}")
        check_accessibility(driver)
        width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page is wider than the screen"
        for box in boxes[1:7]:
            box.send_keys(Keys.SPACE)
        wait_until(driver, lambda _: "6 runs are compared at most" in text_of(driver, "runs-answer"))
        assert not boxes[6].is_selected()
        for box in boxes[:6]:
            box.send_keys(Keys.SPACE)
        wait_until(driver, lambda _: red not in drawn_colours(driver, "Loss"))
        assert text_of(driver, "compared") == ""
        check_console(driver)


def steps(driver):
    """[rank, what its bar says, its own work] of each line of the steps."""
    lines = "[...document.querySelectorAll('#steps li')]"
    each = "[...line.children].map(c => c.getAttribute('aria-label') ?? c.textContent)"
    return driver.execute_script(f"return {lines}.map(line => {each})")


def test_an_encrypted_page_is_watched_and_its_buttons_are_clicked(tmp_path, open_page):
    variables = Tree(tmp_path).variables()
    with acting_job(tmp_path, where="=0.0.0.0:0", scheme="https", **variables) as (job, port, token):
        driver = open_page(port, token=token, protocol="https")
        wait_until(driver, lambda _: text_of(driver, "state") == "running" and is_known(driver, "loss"))
        wait_until(driver, lambda _: "first step" in text_of(driver, "log"))
        click(driver, "act-stop", accept=True)
        assert answer_of(driver, "done").startswith("done: the training stops behind step")
        wait_until(driver, lambda _: text_of(driver, "state") == "ended well")
        check_console(driver)
        assert job.wait() == 0


def test_why_a_job_failed_stands_above_all(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0], exit_code=1)
    with (tmp_path / "this/history.jsonl").open() as file:
        *states, end = file.readlines()
    told = [
        ("error", "scheduler", "worker 1 is gone"),
        ("back", "worker 1", "worker 1 is back"),
        ("failed", "worker 1", "worker 1 (pid 7) exited with code 1"),
        ("error", "scheduler", "worker 0 failed: ValueError: <b>no</b> data"),
        ("error", "scheduler", "worker 1 failed: aborted"),
    ]
    events = [
        json.dumps({"event": {"kind": kind, "time": 1_700_000_001, "process": process, "text": text}}) + "\n"
        for kind, process, text in told
    ]
    (tmp_path / "this/history.jsonl").write_text("".join([*states, *events, end]))
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(driver, lambda _: text_of(driver, "state") == "failed with exit code 1")
        assert text_of(driver, "trouble") == "scheduler: worker 0 failed: ValueError: <b>no</b> data"
        check_accessibility(driver)
        check_console(driver)


def test_what_often_kills_processes_is_said_of_one_that_was_killed(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0], exit_code=None)
    with (tmp_path / "this/history.jsonl").open("a") as file:
        event = {"kind": "error", "time": 1_700_000_001, "process": "scheduler"}
        event["text"] = "worker 1 is gone: it was killed by signal 9 (KILL); its last known step was 7"
        file.write(json.dumps({"event": event}) + "\n")
        file.write('{"end": {"exit_code": 137, "signal": 0, "time": 1700000002}}\n')
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(
            driver, lambda _: text_of(driver, "trouble").endswith("out-of-memory killer: dmesg | grep -i oom")
        )
        assert text_of(driver, "state") == "failed with exit code 137"


def test_a_run_that_was_interrupted_has_not_failed(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0], exit_code=None)
    with (tmp_path / "this/history.jsonl").open("a") as file:
        file.write(
            '{"event": {"kind": "failed", "time": 1700000001, "process": "worker 0", "text": "gone"}}\n'
        )
        file.write('{"end": {"exit_code": 130, "signal": 2, "time": 1700000002}}\n')
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(driver, lambda _: text_of(driver, "state") == "interrupted")
        assert text_of(driver, "trouble") == ""


def test_a_loss_that_is_no_number_stands_above_all(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, "nan"], exit_code=None)
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(driver, lambda _: text_of(driver, "trouble").startswith("the loss is nan: MUSTER_DETECT"))
        wait_until(driver, lambda _: text_of(driver, "curves").startswith("Loss\nnow nan; 3 at 0.0 s"))
        one = "page.rows[0].loss = 1; draw()"
        driver.execute_script(one)
        assert text_of(driver, "trouble").startswith("the loss of rank 1 is nan")
        check_accessibility(driver)


def test_what_to_look_at_is_said_of_a_slow_rank_and_of_one_that_is_awaited(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0])
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(driver, lambda _: text_of(driver, "state") == "ended well")
        slow = "{rank: 1, cause: 'reading_data', text: 'rank 1 holds up the others'}"
        driver.execute_script(f"page.end = null; page.state.slow = [{slow}]; draw()")
        assert text_of(driver, "trouble") == (
            "rank 1 holds up the others. Look at its disk, its share of the data, num_parallel_workers"
        )
        stuck = "page.state.slow = []; page.state.without_step_s = 30; page.rows[0].calls = true; draw()"
        driver.execute_script(stuck)
        assert text_of(driver, "trouble") == (
            "no step for 30 s: the others wait for rank 1 (computing). Where in its code: "
            "muster status --scheduler 127.0.0.1:1 --stacks --rank 1"
        )
        waits = "waiting for node 1 (it was killed) - start it again with MS_NODE_ID=1"
        recovers = "page.state.without_step_s = 0; page.state.state = 'recovering'; draw()"
        driver.execute_script(f"page.state.text = '{waits}'; {recovers}")
        assert text_of(driver, "trouble") == waits
        driver.execute_script("page.restarts = true; draw()")
        assert (
            text_of(driver, "trouble") == "waiting for node 1 (it was killed) - the launcher starts it again"
        )
        driver.execute_script("page.state.without_step_s = 30; page.state.state = 'running'; draw()")
        # Rank 1 waits for a message or a parameter server: for neither of them any more.
        driver.execute_script("page.rows[1].calls = true; page.rows[1].call = 0; draw()")
        assert text_of(driver, "trouble") == ""


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "dark"), ("phone", "light")])
def test_a_step_across_ranks_is_seen(tmp_path, open_page, size, scheme):
    keep_run(tmp_path / "this", [3.0, 2.0], ranks=3, servers=1)
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port, size, scheme)
        wait_until(driver, lambda _: len(steps(driver)) == 3)  # a server makes no steps
        bar = "reading data 1.00 ms, computing 10.0 ms, its script 1.00 ms, waiting for others 88.0 ms"
        assert steps(driver)[2] == ["2", f"Rank 2: {bar}", "own work 12.0 ms of 100 ms"]
        script = "return [...document.querySelectorAll('#steps li:last-child i')].map(i => i.style.width)"
        assert driver.execute_script(script) == ["1%", "10%", "0%", "1%", "0%", "0%", "0%", "88%"]
        assert "The whole width is 100 ms" in text_of(driver, "steps-section")
        driver.find_element(By.ID, "steps-section").location_once_scrolled_into_view  # noqa: B018
        shoot(driver, f"dashboard-steps-{size}")
        check_accessibility(driver)
        width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page is wider than the screen"
        check_console(driver)


def test_of_many_ranks_those_with_most_work_are_seen(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0], ranks=150)
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        wait_until(driver, lambda _: len(steps(driver)) == 64)
        assert [each[0] for each in steps(driver)[:3]] == ["49", "99", "149"]
        assert "The 64 of 150 ranks with the most own work" in text_of(driver, "steps-section")
        assert len(driver.find_elements(By.CSS_SELECTOR, "#map button")) == 150
        check_accessibility(driver)
        check_console(driver)


PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300" viewBox="0 0 900 300">
<style>.red{fill:#ff0000}</style><rect class="red" width="900" height="300"/>
<script>document.documentElement.setAttribute("width", "1")</script></svg>
"""


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_network_is_seen(tmp_path, open_page, size, scheme):
    folder = tmp_path / "this"
    keep_run(folder, [3.0, 2.0])
    (folder / "network.svg").write_text(PICTURE)
    (folder / "network.txt").write_text("workers: 2\n<b id=markup>worker 0</b>: 7 nodes\n")
    with kept_page(folder) as port:
        driver = open_page(port, size, scheme)
        width = "return document.querySelector('#network-picture img').naturalWidth"
        wait_until(driver, lambda _: driver.execute_script(width) == 900)  # its script did not run
        assert not driver.find_element(By.ID, "network-none").is_displayed()
        driver.find_element(By.CSS_SELECTOR, "#network-words summary").send_keys(Keys.ENTER)
        assert "<b id=markup>worker 0</b>: 7 nodes" in text_of(driver, "network-words")
        driver.find_element(By.ID, "network-picture").location_once_scrolled_into_view  # noqa: B018
        shoot(driver, f"dashboard-network-{size}")
        check_accessibility(driver)
        pages = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert pages[0] <= pages[1], "the page is wider than the screen"
        check_console(driver)


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_mesh_is_seen(tmp_path, open_page, size, scheme):
    with kept_page(run_mesh(tmp_path, "mesh")) as port:
        driver = open_page(port, size, scheme)
        width = "return document.querySelector('#network-picture img').naturalWidth"
        wait_until(driver, lambda _: driver.execute_script(width) > 400)
        driver.find_element(By.CSS_SELECTOR, "#network-words summary").send_keys(Keys.ENTER)
        assert "along model: " in text_of(driver, "network-words")
        driver.find_element(By.ID, "network-picture").location_once_scrolled_into_view  # noqa: B018
        shoot(driver, f"dashboard-mesh-{size}-{scheme}")
        check_accessibility(driver)
        pages = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert pages[0] <= pages[1], "the page is wider than the screen"
        check_console(driver)


def test_the_page_says_why_there_is_no_picture_of_the_network(tmp_path, open_page):
    keep_run(tmp_path / "eager", [3.0, 2.0])  # steps, and no plan
    keep_run(tmp_path / "early", [3.0])  # not one step
    keep_run(tmp_path / "whole", [3.0, 2.0])
    (tmp_path / "whole/network.txt").write_text("step: nothing is placed on a worker\n")
    texts = {
        "eager": "Steps are made, and rank 0 has kept no plan: a network in eager mode",
        "early": "No plan has run so far",
        "whole": "step: nothing is placed on a worker",
    }
    for name, text in texts.items():
        with kept_page(tmp_path / name) as port:
            driver = open_page(port)
            wait_until(driver, lambda seen, text=text: text_of(seen, "network-none").startswith(text))
            assert not driver.find_element(By.ID, "network-picture").is_displayed()
            check_accessibility(driver)
            check_console(driver)


def test_the_picture_of_a_job_that_runs_comes_with_its_first_step(tmp_path, open_page):
    with shown_job(tmp_path) as (process, port):
        driver = open_page(port)
        wait_until(driver, lambda _: "nothing is placed on a worker" in text_of(driver, "network-none"))
        end_job(tmp_path)
        assert process.wait() == 0


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_one_step_is_seen_in_time(tmp_path, open_page, size, scheme):
    keep_run(tmp_path / "this", [3.0, 2.0], ranks=3)
    for rank in [0, 1]:
        line_of_rank(tmp_path / "this", rank, {50: 0})
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port, size, scheme)
        found = "[...document.querySelectorAll('#timeline li:nth-child(1) div > i')]"
        bars = f"return {found}.map(i => [i.className, i.style.left, i.style.width])"
        wait_until(driver, lambda seen: len(seen.execute_script(bars)) > 0)
        assert driver.execute_script(bars) == [
            ["reading_data", "0%", "10%"],
            ["computing", "10%", "90%"],
            ["forward", "10%", "10%"],
            ["backward", "20%", "20%"],
            ["update", "90%", "10%"],
            ["waiting", "30%", "10%"],  # until rank 1 made the same call
            ["call", "40%", "50%"],
        ]
        assert "All times are of the clock of a: the ranks are aligned." in text_of(driver, "timeline-scale")
        assert "Of 3 ranks 1 kept no such step here" in text_of(driver, "timeline-scale")
        label = "return document.querySelector('#timeline li:nth-child(2) .calls').getAttribute('aria-label')"
        assert driver.execute_script(label).startswith("Rank 1, calls: all_reduce 7 ")
        driver.find_element(By.ID, "timeline-section").location_once_scrolled_into_view  # noqa: B018
        shoot(driver, f"dashboard-timeline-{size}")
        check_accessibility(driver)
        width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page is wider than the screen"
        check_console(driver)


def test_clocks_of_several_hosts_are_said_to_differ(tmp_path, open_page):
    keep_run(tmp_path / "this", [3.0, 2.0])
    for rank, host in enumerate(["a", "b"]):
        line_of_rank(tmp_path / "this", rank, {50: 0}, host=host)
    with kept_page(tmp_path / "this") as port:
        driver = open_page(port)
        text = "the clocks of a, b are not aligned with each other"
        wait_until(driver, lambda seen: text in text_of(seen, "timeline-scale"))
