"""A Lambda executor for LocalStack that needs no containers.

LocalStack decides when an environment starts and ends. The Go program that started LocalStack runs it, with the
project's own Runtime API (environments.go). This class forwards the calls to the address in GATEWAY_EXECUTOR.
LocalStack finds this folder on its PYTHONPATH, and the class by entry_points.txt.
"""

import os

import requests
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor


class Plugin(RuntimeExecutorPlugin):
    name = "gateway"

    def load(self, *args, **kwargs):
        return Executor


class Executor(RuntimeExecutor):
    def __init__(self, id, function_version):
        super().__init__(id, function_version)
        self.address = f"{os.environ['GATEWAY_EXECUTOR']}/environments/{id}"
        self.session = requests.Session()
        self.session.trust_env = False  # no proxies

    def start(self, env_vars):
        config = self.function_version.config
        environment = {
            "function": self.function_version.id.function_name,
            "bootstrap": str(config.code.get_unzipped_code_location() / "bootstrap"),
            "timeout": config.timeout,
            "memory": config.memory_size,
            "environment": {name: str(value) for name, value in env_vars.items()},
        }
        self.session.put(self.address, json=environment).raise_for_status()

    def invoke(self, payload):
        event = {
            "id": payload["invoke-id"],
            "arn": payload["invoked-function-arn"],
            "trace": payload["trace-id"],
            "payload": payload["payload"],
        }
        response = self.session.post(f"{self.address}/invocations", json=event)
        response.raise_for_status()
        return InvocationResult(
            request_id=event["id"],
            payload=response.content,
            is_error="Function-Error" in response.headers,
            logs="see the logs of the Go program",
        )

    def stop(self):
        self.session.delete(self.address)

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return self.address

    def get_logs(self):
        return ""

    @classmethod
    def prepare_version(cls, function_version):
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        pass
