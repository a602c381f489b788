import lumora


def main() -> None:
    # tag::open[]
    box = lumora.open("a.box")  # <1>
    # end::open[]
    print(box)
