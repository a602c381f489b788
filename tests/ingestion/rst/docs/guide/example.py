import lumora


def main() -> None:
    # begin
    box = lumora.open("a.box", size=3)
    print(box)
    # end


class Later:
    pass
