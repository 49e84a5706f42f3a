"""Adapters (LoRA) of fake_server.py, by the routes of vLLM and of SGLang: loaded from a folder of peft under a name that
requests give. As in both servers, only one that was started with --enable-lora has them, and a name is taken until it is
unloaded (vLLM: or replaced with load_inplace)."""


def add_flags(parser):
    parser.add_argument("--enable-lora", action="store_true", dest="enable_lora")
    parser.add_argument("--max-lora-rank", type=int, dest="max_lora_rank")
    parser.add_argument("--max-loras", type=int, dest="max_loras")
    parser.add_argument("--lora-target-modules", nargs="*", dest="lora_target_modules")


class Adapters:
    def __init__(self, fake, options):
        self.fake = fake
        self.enabled = options.enable_lora
        self.settings = {key: getattr(options, key) for key in ("enable_lora", "max_lora_rank", "lora_target_modules")}
        self.loaded = {}  # name -> weights of the base with the adapter
        self.last = None

    def has(self, name):
        return name is None or name in self.loaded

    def weights(self, name):
        return self.fake.weights if name is None else self.loaded[name]

    def load(self, name, folder):
        """Whether it was done."""
        new = self.fake.loaded(folder, self.last or self.fake.weights, base=self.fake.weights)
        if new is not None:
            self.loaded[name] = self.last = new
        return new is not None

    def vllm(self, path, body):
        name = body["lora_name"]
        if not self.enabled:
            return 404, {"detail": "Not Found"}
        if path == "/v1/unload_lora_adapter":
            return (200, "removed") if self.loaded.pop(name, None) else (404, {"error": f"no adapter {name}"})
        if name in self.loaded and not body.get("load_inplace"):
            return 400, {"error": f"the adapter {name} is loaded already"}
        return (200, "added") if self.load(name, body["lora_path"]) else (500, {"error": "out of memory"})

    def sglang(self, path, body):
        if path == "/server_info":
            return 200, self.settings
        refused = self.sglang_refuses(path, body)
        return (400 if refused else 200), {"success": not refused, "error_message": refused,
                                           "loaded_adapters": dict.fromkeys(self.loaded, "")}

    def sglang_refuses(self, path, body):
        """Does it; why not, otherwise."""
        name = body["lora_name"]
        if not self.enabled:
            return "LoRA is not enabled. Please set `--enable-lora` to enable LoRA."
        if path == "/unload_lora_adapter":
            return "" if self.loaded.pop(name, None) else f"LoRA with name {name} does not exist"
        if name in self.loaded:
            return f"LoRA adapter {name} is already loaded."
        return "" if self.load(name, body["lora_path"]) else "out of memory"
