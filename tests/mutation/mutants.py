"""The possible changes of a file, and the file with all of them, each selected by a number.

A site is a piece of text with alternatives. In the schema, the file that is compiled, it is

    (sluice_mutation::chosen == 7 ? (a <= b) : (a < b))

and the environment variable SLUICE_MUTANT chooses one alternative of the whole file: one build, many mutants. An
alternative is built from the original text, since no two mutants are ever active together.
"""
import re

SELECTOR = """#pragma once
#include <cstdlib>
#include <type_traits>
namespace sluice_mutation {
inline const int chosen = [] {
  const char *text = std::getenv("SLUICE_MUTANT");
  return text == nullptr ? 0 : std::atoi(text);
}();
// For functions that the compiler may call: what it computes is never mutated.
constexpr bool is(int mutant) { return std::is_constant_evaluated() ? false : chosen == mutant; }
} // namespace sluice_mutation
"""

BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "%=", "^="}
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}
CALLS = {"CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr"}
WRAPPERS = {"ExprWithCleanups", "ImplicitCastExpr", "CXXBindTemporaryExpr", "MaterializeTemporaryExpr", "ParenExpr",
            "CXXRewrittenBinaryOperator"}
# Values that the compiler computes, and copies of text from elsewhere.
NEVER = {"ConstantExpr", "StaticAssertDecl", "EnumConstantDecl", "TemplateArgument", "CXXDefaultArgExpr",
         "CXXDefaultInitExpr", "ConceptDecl", "RequiresExpr", "FullComment", "TemplateTypeParmDecl",
         "NonTypeTemplateParmDecl", "UnaryExprOrTypeTraitExpr", "CXXNoexceptExpr"}
BUILTIN = re.compile(r"(unsigned |signed )?(char|short|int|long|long long)|bool|float|double")


def plain(text):
    """One line without comments: a // would comment out the rest, and lines keep their numbers."""
    parts = re.split(r'("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')', text)
    parts[::2] = [re.sub(r"\s+", " ", re.sub(r"//[^\n]*|/\*.*?\*/", " ", part, flags=re.DOTALL)) for part in parts[::2]]
    return "".join(parts).strip()


class Site:
    def __init__(self, begin, end, function, is_constexpr):
        self.begin, self.end, self.function, self.is_constexpr = begin, end, function, is_constexpr
        self.wrap = ""  # the type the value is converted to, so that a constant may become a variable
        self.alternatives = {}  # shown -> text


class Mutant:
    """`key` identifies it as long as its function and its line stay the same, wherever they move to."""

    def __init__(self, number, site, lines, text, key):
        self.number, self.site, self.text, self.key = number, site, text, key
        self.line, self.last_line = lines

    def __str__(self):
        return self.key.replace(":", f":{self.line}:", 1)


class Finder:
    """Collects the sites of one file."""

    def __init__(self, path, source):
        self.path, self.source = str(path), source
        self.sites = {}
        self.skipped = set()
        self.noreturn = set()
        self.is_constexpr = True  # whether the visited function is, or code outside functions may be

    def text(self, node):
        return plain(self.source[node.begin:node.end].decode())

    def between(self, left, right):
        return plain(self.source[left.end:right.begin].decode()).strip(" ()")

    def is_here(self, node):
        return node.file == self.path and node.has_text()

    def add(self, node, function, shown, text=None, wrap=""):
        site = self.sites.setdefault((node.begin, node.end), Site(node.begin, node.end, function, self.is_constexpr))
        if wrap and not site.alternatives:
            site.wrap = wrap
        site.alternatives.setdefault(shown, shown if text is None else text)

    def visit(self, node, function="", parent=None):
        is_constant = node.kind == "VarDecl" and node.data.get("constexpr") or node.kind == "FieldDecl"
        if node.kind in FUNCTIONS and self.is_here(node):
            head = self.source[node.begin:node.end].split(b"(")[0]
            is_constant = b"consteval" in head
        if node.kind in NEVER or is_constant or (node.kind in FUNCTIONS and node.data.get("isImplicit")):
            return
        is_function = node.kind in FUNCTIONS and node.data.get("name", "") != "operator()"
        if is_function:
            function = node.data.get("name", "")
            outside, self.is_constexpr = self.is_constexpr, bool(node.data.get("constexpr"))
            if any(child.kind == "CXX11NoReturnAttr" for child in node.children):
                self.noreturn.add(function)  # without its one statement it would not do anything
        if self.is_here(node):
            self.expression(node, function, parent)
        self.statements(node, function)
        for child in node.children:
            self.visit(child, function, node)
        if is_function:
            self.is_constexpr = outside

    def expression(self, node, function, parent):
        if node.kind in ("BinaryOperator", "CompoundAssignOperator", "CXXOperatorCallExpr"):
            self.binary(node, function)
        elif node.kind == "IntegerLiteral":
            self.constant(node, function, parent)
        elif node.kind == "CXXBoolLiteralExpr":
            self.add(node, function, {"true": "false", "false": "true"}[self.text(node)])
        elif node.kind == "UnaryOperator" and node.data.get("opcode") == "!":
            if self.source[node.begin:node.begin + 1] == b"!" and self.source[node.begin + 1:node.begin + 2] != b"=":
                self.add(node, function, f"bool({self.text(node)[1:]})")
        elif node.kind == "ConditionalOperator" and self.is_here(node.children[0]):
            self.negate(node.children[0], function)

    def binary(self, node, function):
        operands = node.children[1:] if node.kind == "CXXOperatorCallExpr" else node.children
        if len(operands) != 2 or not all(self.is_here(operand) for operand in operands):
            return
        left, right = sorted(operands, key=lambda operand: operand.begin)
        operator = self.between(left, right)
        a, b = self.text(left), self.text(right)
        if operator in BOUNDARY:
            self.add(node, function, f"{a} {BOUNDARY[operator]} {b}")
        if operator in OPPOSITE:
            self.add(node, function, f"{a} {OPPOSITE[operator]} {b}")
        if operator in ARITHMETIC and node.kind != "CXXOperatorCallExpr":  # text has no minus
            self.add(node, function, f"{a} {ARITHMETIC[operator]} {b}")
        if operator in ("&&", "||"):
            self.add(node, function, f"{a} {'||' if operator == '&&' else '&&'} {b}")
            self.add(node, function, a, f"bool({a})")
            self.add(node, function, b, f"bool({b})")

    def constant(self, node, function, parent):
        text = self.text(node)
        to = ""
        if parent is not None and parent.kind == "ImplicitCastExpr":
            if parent.data.get("castKind") in ("NullToPointer", "IntegralToBoolean"):
                return
            of = parent.data.get("type", {})
            to = of.get("desugaredQualType", of.get("qualType", "")).replace("const ", "")
            to = to if BUILTIN.fullmatch(to) else ""
        for shown in (f"{text} + 1", f"{text} - 1"):
            self.add(node, function, shown, wrap=to)

    def negate(self, node, function):
        """A condition that is not a comparison; comparisons are inverted anyway."""
        if not self.is_here(node) or self.unwrapped(node).kind in ("IntegerLiteral", "CXXBoolLiteralExpr"):
            return
        inner = self.unwrapped(node)
        is_binary = inner.kind in ("BinaryOperator", "CXXOperatorCallExpr")
        operands = inner.children[-2:]
        if is_binary and len(operands) == 2 and all(map(self.is_here, operands)):
            left, right = sorted(operands, key=lambda operand: operand.begin)
            if self.between(left, right) in OPPOSITE:
                return
        # For && and || each side is tried on its own, and for !x, x.
        if inner.data.get("opcode") in ("!", "&&", "||"):
            return
        self.add(node, function, f"!({self.text(node)})")

    @staticmethod
    def unwrapped(node):
        while node.kind in WRAPPERS and node.children:
            node = node.children[0]
        return node

    def statements(self, node, function):
        """Statements that may be left out, and checks that may be."""
        if node.kind == "IfStmt" and not node.data.get("isConstexpr"):
            parts = list(node.children)
            if node.data.get("hasInit"):
                parts.pop(0)
            if node.data.get("hasVar"):
                parts.pop(0)
            condition, branches = parts[0], parts[1:]
            if self.is_here(condition) and condition.kind != "DeclStmt" and not node.data.get("hasVar"):
                self.negate(condition, function)
                self.add(condition, function, "false")
            for branch in branches:
                # An `if` with only a call and without an else counts as that call left out.
                only_one = len(branches) == 1
                if branch.kind != "CompoundStmt" and not only_one:
                    self.leave_out(branch, function)
                elif branch.kind == "CompoundStmt" and only_one and len(branch.children) == 1:
                    self.skipped.add(id(branch))
        elif node.kind in ("CompoundStmt", "CaseStmt", "DefaultStmt"):
            if id(node) not in self.skipped:
                for child in node.children:
                    self.leave_out(child, function)
        elif node.kind in ("ForStmt", "CXXForRangeStmt", "WhileStmt") and node.children:
            if node.kind == "WhileStmt":
                self.negate(node.children[0], function)
            self.leave_out(node.children[-1], function)
        elif node.kind == "ReturnStmt" and node.children:
            kind = self.unwrapped(node.children[0])
            if kind.data.get("type", {}).get("qualType") == "bool" and kind.kind in CALLS:
                self.negate(node.children[0], function)

    def leave_out(self, node, function):
        if function in self.noreturn:
            return
        inner = self.unwrapped(node)
        if inner.kind == "BinaryOperator" and inner.data.get("opcode") == ",":
            for operand in inner.children:
                self.leave_out(operand, function)
            return
        is_assignment = inner.kind in ("BinaryOperator", "CompoundAssignOperator") and inner.data["opcode"] in ASSIGNMENTS
        is_step = inner.kind == "UnaryOperator" and inner.data.get("opcode") in ("++", "--")
        if not self.is_here(node) or not (is_assignment or is_step or inner.kind in CALLS):
            return
        self.add(node, function, "(left out)", "(void)0", wrap="void")


def find_mutants(path, shown_path, source, trees):
    """The mutants of a file, in the order of its text, numbered from 1."""
    finder = Finder(path, source)
    for tree in trees:
        finder.visit(tree)
    lines = source.decode().split("\n")
    mutants, keys = [], {}
    for place in sorted(finder.sites, key=lambda place: (place[0], -place[1])):
        site = finder.sites[place]
        original = plain(source[site.begin:site.end].decode())
        ends = [source.count(b"\n", 0, end) + 1 for end in (site.begin, site.end)]
        # A number without its line is not enough to find it.
        around = f"  in  {lines[ends[0] - 1].strip()}" if len(original) < 8 else ""
        for shown, text in site.alternatives.items():
            key = f"{shown_path}: {site.function}: {original}  ->  {shown}{around}"
            keys[key] = keys.get(key, 0) + 1
            if keys[key] > 1:
                key += f"  (number {keys[key]})"
            mutants.append(Mutant(len(mutants) + 1, site, ends, text, key))
    return mutants


def schema(source, mutants):
    """The file with all the mutants in it. Lines keep their numbers."""
    sites = {}
    for mutant in mutants:
        sites.setdefault((mutant.site.begin, mutant.site.end), []).append(mutant)
    order = sorted(sites, key=lambda key: (key[0], -key[1]))

    def render(begin, end, inside):
        """The text from begin to end, with the sites `inside`, which are sorted and within it."""
        out, at = [], begin
        while inside:
            key = inside[0]
            nested = [other for other in inside[1:] if other[0] < key[1]]
            inside = inside[1 + len(nested):]
            if any(other[1] > key[1] for other in nested):
                raise ValueError(f"sites overlap at {key}")
            out.append(source[at:key[0]].decode())
            group = sites[key]
            wrap = group[0].site.wrap
            body = render(key[0], key[1], nested)
            convert = f"({wrap})" if wrap else ""
            chosen = "sluice_mutation::is({})" if group[0].site.is_constexpr else "sluice_mutation::chosen == {}"
            chain = "".join(f"{chosen.format(m.number)} ? {convert}({m.text}) : " for m in group)
            out.append(f"({chain}{convert}({body}))")
            at = key[1]
        out.append(source[at:end].decode())
        return "".join(out)

    return render(0, len(source), order)
