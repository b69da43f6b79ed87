"""Makes the cases of testdata/control: loops and branches, with the results of onnxruntime.

    python control.py DIRECTORY
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, kind, *sizes):
    return helper.make_tensor_value_info(name, kind, sizes)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), **attributes)


def weight(name, *sizes):
    r = np.random.default_rng(len(name))
    return numpy_helper.from_array(r.normal(0, 0.4, sizes).astype(np.float32), name)


def newton():
    """A loop until a root hardly moves."""
    body = helper.make_graph(
        [node("Div", "x r", "q"), node("Add", "r q", "s"), node("Mul", "s half", "next"),
         node("Sub", "next r", "d"), node("Abs", "d", "a"), node("ReduceMax", "a", "m", keepdims=0),
         node("Greater", "m eps", "go")],
        "body", [value("i", I), value("c", B), value("r", F, 3)],
        [value("go", B), value("next", F, 3)],
        [numpy_helper.from_array(np.float32(0.5), "half"),
         numpy_helper.from_array(np.float32(1e-4), "eps")])
    return helper.make_graph(
        [node("Identity", "yes", "c0"), node("Loop", " c0 x", "y", body=body)], "newton",
        [value("x", F, 3), value("yes", B)], [value("y", F, 3)]), {
            "x": np.array([4, 9, 100], np.float32), "yes": np.array(True)}


def branch():
    """A branch by data, of which one side has a weight."""
    then = helper.make_graph([node("MatMul", "x w", "t")], "then", [], [value("t", F, 2, 4)])
    other = helper.make_graph([node("Exp", "x", "e")], "else", [], [value("e", F, 2, 4)])
    return helper.make_graph(
        [node("ReduceMean", "x", "m", keepdims=0), node("Greater", "m zero", "p"),
         node("If", "p", "y", then_branch=then, else_branch=other)], "branch",
        [value("x", F, 2, 4)], [value("y", F, 2, 4)],
        [weight("w", 4, 4), numpy_helper.from_array(np.float32(0), "zero")]), {
            "x": np.arange(8, dtype=np.float32).reshape(2, 4) - 3}


def recurrent():
    """A recurrent layer as a scan, with weights of the graph around it."""
    body = helper.make_graph(
        [node("Concat", "x h", "xh", axis=1), node("MatMul", "xh w", "z"), node("Add", "z b", "s"),
         node("Tanh", "s", "next"), node("Identity", "next", "row")],
        "body", [value("h", F, 2, 5), value("x", F, 2, 3)],
        [value("next", F, 2, 5), value("row", F, 2, 5)])
    return helper.make_graph(
        [node("Scan", "h0 xs", "h ys", body=body, num_scan_inputs=1, scan_input_directions=[1],
              scan_output_directions=[1])], "recurrent",
        [value("h0", F, 2, 5), value("xs", F, 7, 2, 3)],
        [value("h", F, 2, 5), value("ys", F, 7, 2, 5)], [weight("w", 8, 5), weight("b", 5)]), {
            "h0": np.zeros((2, 5), np.float32),
            "xs": np.sin(np.arange(42, dtype=np.float32)).reshape(7, 2, 3)}


def counted():
    """A loop of 100 iterations with rows, in which a branch depends on the iteration."""
    then = helper.make_graph([node("Add", "h b", "t")], "then", [], [value("t", F, 5)])
    other = helper.make_graph([node("Mul", "h b", "e")], "else", [], [value("e", F, 5)])
    body = helper.make_graph(
        [node("Less", "i many", "p"), node("If", "p", "n", then_branch=then, else_branch=other), node("Sin", "n", "next"),
         node("Identity", "c", "go"), node("Identity", "next", "row")],
        "body", [value("i", I), value("c", B), value("h", F, 5)],
        [value("go", B), value("next", F, 5), value("row", F, 5)])
    return helper.make_graph(
        [node("Loop", "n100 yes x", "y rows", body=body)], "counted", [value("x", F, 5)],
        [value("y", F, 5), value("rows", F, 100, 5)],
        [weight("b", 5), numpy_helper.from_array(np.int64(100), "n100"),
         numpy_helper.from_array(np.array(True), "yes"),
         numpy_helper.from_array(np.int64(30), "many")]), {
            "x": np.linspace(-1, 1, 5, dtype=np.float32)}


for make in (newton, branch, recurrent, counted):
    graph, feeds = make()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9,
                              producer_name="gomem-tests")
    onnx.checker.check_model(model)
    results = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    folder = os.path.join(sys.argv[1], make.__name__)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for i, v in enumerate(graph.input):
        with open(os.path.join(data, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(feeds[v.name], v.name).SerializeToString())
    for i, (v, x) in enumerate(zip(graph.output, results)):
        with open(os.path.join(data, f"output_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(x, v.name).SerializeToString())
