"""A client that speaks the kernel protocol by hand, past the page: what a visitor with bad intentions can send."""

import json
import uuid
from dataclasses import dataclass, field

import websocket

PROTOCOL = "v1.kernel.websocket.jupyter.org"


@dataclass(kw_only=True)
class Intruder:
    """A client that speaks the kernel protocol by hand."""

    socket: websocket.WebSocket
    kernel_id: str
    html: str
    seen: list[dict] = field(default_factory=list)

    def send(self, msg_type: str, content: dict, channel: str = "shell") -> str:
        msg_id = uuid.uuid4().hex
        header = {"msg_id": msg_id, "msg_type": msg_type, "version": "5.3", "session": "x", "username": "", "date": ""}
        parts = [channel.encode(), *(json.dumps(part).encode() for part in (header, {}, {}, content))]
        starts = [8 * (len(parts) + 2)]
        for part in parts:
            starts.append(starts[-1] + len(part))
        numbers = [len(starts), *starts]
        self.socket.send_binary(b"".join([*(number.to_bytes(8, "little") for number in numbers), *parts]))
        return msg_id

    def answers(self, msg_id: str) -> list[dict]:
        """Every answer to a message, told by the answer to a harmless one that was sent after it."""
        last = self.send("comm_info_request", {"target_name": "jupyter.widget"})
        # Replies and states come on two channels, and a busy server may forward either first.
        while not {"comm_info_reply", "idle"} <= {
            message["content"].get("execution_state") or message["header"]["msg_type"]
            for message in self.seen
            if _parent(message) == last
        }:
            self.seen.append(_read(self.socket.recv()))
        return [message for message in self.seen if _parent(message) == msg_id]

    def widgets(self) -> dict[str, dict]:
        """Every widget's state by id, as a page asks for it."""
        known = self.answers_to("comm_info_request", {"target_name": "jupyter.widget"}, "comm_info_reply")[0][
            "content"
        ]["comms"]
        states = {}
        for comm_id in known:
            sent = {"comm_id": comm_id, "data": {"method": "request_state"}}
            updates = self.answers_to("comm_msg", sent, "comm_msg")
            states[comm_id] = updates[0]["content"]["data"]["state"]
        return states

    def answers_to(self, msg_type: str, content: dict, answer_type: str) -> list[dict]:
        answers = self.answers(self.send(msg_type, content))
        return [message for message in answers if message["header"]["msg_type"] == answer_type]

    def set(self, comm_id: str, **state: object) -> list[dict]:
        """Set traits as a page's control does; the states that come back."""
        sent = {"comm_id": comm_id, "data": {"method": "update", "state": state, "buffer_paths": []}}
        return [message["content"]["data"] for message in self.answers_to("comm_msg", sent, "comm_msg")]


def _parent(message: dict) -> str:
    return message["parent_header"].get("msg_id", "")


def _read(message: bytes) -> dict:
    """Protocol v1: a count, so many offsets, then channel, header, parent header, metadata, content, buffers."""
    numbers = [
        int.from_bytes(message[8 * k : 8 * k + 8], "little") for k in range(int.from_bytes(message[:8], "little") + 1)
    ]
    header, parent, _, content = (json.loads(message[numbers[k] : numbers[k + 1]]) for k in range(2, 6))
    return {"header": header, "parent_header": parent, "content": content}


def connected(port: int, kernel_id: str) -> websocket.WebSocket:
    url = f"ws://localhost:{port}/api/kernels/{kernel_id}/channels"
    return websocket.create_connection(url, timeout=30, subprotocols=[PROTOCOL])
