"""What a visitor can reach: tried, not read. Over the websocket, past the page, with the kernel's id in hand; and over HTTP."""

import json

import pytest
import websocket
from intruder import Intruder, connected
from serving import PAGE, serve, wait_until


@pytest.fixture(scope="module")
def intruder(standin):
    kernel_id, html = standin.kernel_of_a_visit()
    socket = connected(standin.port, kernel_id)
    yield Intruder(socket=socket, kernel_id=kernel_id, html=html)
    socket.close()


@pytest.mark.parametrize(
    ("msg_type", "channel", "content"),
    [
        ("execute_request", "shell", {"code": "open({path!r}, 'w')", "silent": False}),
        ("execute_request", "control", {"code": "open({path!r}, 'w')", "silent": False}),
        ("execute_request", "shell", {"code": "", "user_expressions": {"x": "open({path!r}, 'w')"}}),
        ("inspect_request", "shell", {"code": "standin", "cursor_pos": 3, "detail_level": 1}),
        ("complete_request", "shell", {"code": "standin.", "cursor_pos": 8}),
        ("history_request", "shell", {"hist_access_type": "tail", "n": 9, "output": False, "raw": True}),
        ("is_complete_request", "shell", {"code": "1"}),
        (
            "debug_request",
            "control",
            {"type": "request", "command": "evaluate", "arguments": {"expression": "open({path!r}, 'w')"}},
        ),
        ("create_subshell_request", "control", {}),
        ("interrupt_request", "control", {}),
        ("input_reply", "stdin", {"value": "open({path!r}, 'w')"}),
    ],
)
def test_a_visitor_cannot_run_or_read_code(intruder, tmp_path, msg_type, channel, content):
    written = tmp_path / "written"
    filled = json.loads(json.dumps(content).replace("{path!r}", f"'{written}'"))
    assert intruder.answers(intruder.send(msg_type, filled, channel)) == []
    assert not written.exists()


def test_a_frame_that_would_hang_the_server_only_closes_its_own_connection(standin, intruder):
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "eA==",
        "Sec-WebSocket-Version": "13",
    }
    assert standin.answer(f"/api/kernels/{intruder.kernel_id}/channels", headers=upgrade).status == 400
    for frame in (b"\xff" * 64, b"{}", b""):
        socket = connected(standin.port, intruder.kernel_id)
        socket.send_binary(frame)
        if frame.startswith(b"\xff"):
            assert _closed(socket)
        socket.shutdown()
    assert standin.answer("/voila/static/voila.js").status == 200


def _closed(socket: websocket.WebSocket) -> bool:
    """Whether the server hangs up, after whatever the kernel had to say meanwhile."""
    while True:
        opcode, _ = socket.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return True


def test_the_intruder_would_be_heard_if_it_were_allowed(intruder):
    assert intruder.answers_to("kernel_info_request", {}, "kernel_info_reply")


@pytest.fixture(scope="module")
def level(intruder):
    return _named(intruder, "Level")


def _named(intruder, description: str) -> str:
    return next(key for key, state in intruder.widgets().items() if state.get("description") == description)


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        ({"value": 1000}, "Level=1000 must be a whole number in [1, 99]"),
        ({"value": -1}, "Level=-1 must be a whole number in [1, 99]"),
        ({"value": 50.5}, "Level=50.5 must be a whole number in [1, 99]"),
        ({"value": True}, "Level=True must be a whole number in [1, 99]"),
        ({"value": None}, "Level=None must be a whole number in [1, 99]"),
        ({"value": "<b>"}, "Level=&#x27;&lt;b&gt;&#x27; must be a whole number in [1, 99]"),
        ({"max": 10**9}, "Level: max must not be set by a page"),
        ({"max": 10**9, "value": 1000}, "Level: max must not be set by a page"),
    ],
)
def test_a_value_outside_the_controls_range_is_refused_by_name_value_and_limit(intruder, level, sent, complaint):
    updates = intruder.set(level, **sent)
    messages = [update["state"]["value"] for update in updates if "alert" in str(update.get("state", {}).get("value"))]
    assert any(complaint in message for message in messages)
    restored = intruder.widgets()[level]
    assert (restored["value"], restored["max"]) == (50, 99)


def test_a_selection_takes_only_its_own_options(intruder):
    width = _named(intruder, "Width")
    assert "must be a whole number in [0, 5]" in str(intruder.set(width, index=6))
    assert "_options_labels must not be set by a page" in str(intruder.set(width, _options_labels=["1", "999"]))
    assert intruder.widgets()[width]["index"] == 3


def test_the_page_lives_on_after_a_refusal(intruder, level):
    assert "must be a whole number" in str(intruder.set(level, value=1000))
    assert "level=51 depth=4" in str(intruder.set(level, value=51))
    intruder.set(level, value=50)


@pytest.mark.parametrize("message", [{"kind": "all"}, {"kind": "nothing"}, {}, [], "all", 3, None])
def test_any_message_to_the_plots_leaves_them_alive(intruder, message):
    plots = next(key for key, state in intruder.widgets().items() if state["_model_module"] == "anywidget")
    intruder.answers_to("comm_msg", {"comm_id": plots, "data": {"method": "custom", "content": message}}, "comm_msg")
    assert intruder.widgets()[plots]["state"]["content"]["figures"]["lines"]["title"] == "Six lines against their share"


def test_no_source_in_the_page(intruder):
    assert "the-source-of-this-page" not in intruder.html
    assert "standin.page" not in intruder.html


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/kernels"),
        ("GET", "/api/kernels"),
        ("POST", "/api/kernels/{kernel_id}/restart"),
        ("POST", "/api/kernels/{kernel_id}/interrupt"),
        ("DELETE", "/api/kernels/{kernel_id}"),
        ("GET", "/api/sessions"),
        ("GET", "/api/contents/explorer.ipynb"),
        ("POST", "/api/terminals"),
        ("GET", "/voila/api/contents/explorer.ipynb"),
        ("GET", "/voila/tree"),
        ("GET", "/voila/files/explorer.ipynb"),
        ("GET", "/voila/files/standin.py"),
        ("GET", "/voila/files/../serving.py"),
        ("GET", "/voila/files/..%2fserving.py"),
        ("GET", "/voila/static/../app.py"),
        ("GET", "/voila/static/..%2f..%2fapp.py"),
        ("GET", "/voila/templates/rlqueue/static/../index.html.j2"),
        ("GET", "/voila/templates/rlqueue/static/..%2f..%2f..%2f..%2fserver.py"),
        ("GET", "/voila/labextensions/../../../pyvenv.cfg"),
        ("GET", "/rlqueue/0000000000000000/plotly.js"),
        ("GET", "/voila/render/standin.py"),
        ("GET", "/voila/render/../test_safety.py"),
        ("GET", "/voila/render/..%2ftest_safety.py"),
        ("GET", "/explorer.ipynb"),
    ],
)
def test_nothing_else_is_served(standin, intruder, method, path):
    answer = standin.answer(path.format(kernel_id=intruder.kernel_id), method)
    assert answer.status >= 300, answer.body[:300]
    assert "import " not in answer.body
    assert "the-source-of-this-page" not in answer.body


def test_no_other_template_can_be_asked_for(standin):
    body = standin.answer("/voila/render/explorer.ipynb?template=lab&theme=dark").body
    assert "cdn" not in body
    assert "data-plotly" in body


def test_a_kernel_whose_page_is_gone_is_culled():
    options = ("--MappingKernelManager.cull_idle_timeout=2", "--MappingKernelManager.cull_interval=1")
    with serve(PAGE, *options) as server:
        kernel_id, _ = server.kernel_of_a_visit()
        assert server.answer(f"/api/kernels/{kernel_id}").status == 200
        wait_until(lambda: server.answer(f"/api/kernels/{kernel_id}").status == 404, 30, server.log)
